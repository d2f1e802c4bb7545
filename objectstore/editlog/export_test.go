package editlog

import (
	"encoding/binary"
	"hash/crc32"
)

// reseal makes both checksums of an object fit its bytes.
func reseal(data []byte) {
	binary.LittleEndian.PutUint32(data[52:], uint32(len(data)-headerSize))
	binary.LittleEndian.PutUint32(data[56:], crc32.Checksum(data[headerSize:], castagnoli))
	binary.LittleEndian.PutUint32(data[60:], crc32.Checksum(data[:60], castagnoli))
}
