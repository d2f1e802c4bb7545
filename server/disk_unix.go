//go:build linux || darwin

package server

import "syscall"

// diskSpace returns the bytes that are free to this user, and all.
func diskSpace(dir string) (free, total uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	size := uint64(s.Bsize)
	return s.Bavail * size, s.Blocks * size, nil
}
