package objectstoretest

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
)

// An Op is one operation on a disk or bucket, before it happens. Close and
// Abort are not operations: they always work.
type Op struct {
	N    int    // counts from 1
	Name string // such as "create", "write", "sync", "syncdir", "commit"
	Path string // of the file or object
}

// An Action is what a Hook does to an operation.
type Action uint8

// The actions.
const (
	Pass  Action = iota
	Stop         // it and every later operation fail with ErrCrashed and do nothing
	Fail         // it fails with ErrInjected and does nothing
	After        // it happens, and then fails with ErrInjected
	Tear         // a write does half and then fails with ErrInjected; others: Fail
	Full         // it fails with ENOSPC if it needs space, a write after half; others: Pass
)

// String returns the action's name.
func (a Action) String() string {
	return [...]string{"pass", "stop", "fail", "after", "tear", "full"}[a]
}

// ErrInjected is the error of an operation that a Hook made fail.
var ErrInjected = errors.New("objectstoretest: injected failure")

// A Hook decides what happens to each operation. It is called by one goroutine
// at a time.
type Hook func(Op) Action

// At does action to operation n.
func At(n int, action Action) Hook {
	return func(op Op) Action {
		if op.N == n {
			return action
		}
		return Pass
	}
}

// FullFor makes the disk full from operation n on, until m operations have
// been made.
func FullFor(n, m int) Hook {
	return func(op Op) Action {
		if n <= op.N && op.N < n+m {
			return Full
		}
		return Pass
	}
}

// Faults counts operations and makes some fail. One Faults may wrap any number
// of disks and buckets, and counts all their operations together. A sweep runs
// a workload with At(n, action) for n = 1, 2, 3 …, until Ops is below n at the
// end of the run.
type Faults struct {
	mu struct {
		sync.Mutex
		n       int
		hook    Hook
		stopped bool
	}
}

// NewFaults returns Faults with the given hook; nil lets everything pass.
func NewFaults(hook Hook) *Faults {
	f := &Faults{}
	f.mu.hook = hook
	return f
}

// SetHook replaces the hook. Operations go on counting.
func (f *Faults) SetHook(hook Hook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.hook = hook
}

// Ops returns how many operations were made, failed ones included.
func (f *Faults) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.n
}

// Stopped reports whether a Stop has happened.
func (f *Faults) Stopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.stopped
}

// next counts an operation and returns what is to happen to it.
func (f *Faults) next(name, path string) Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.n++
	if f.mu.stopped {
		return Stop
	}
	if f.mu.hook == nil {
		return Pass
	}
	a := f.mu.hook(Op{N: f.mu.n, Name: name, Path: path})
	f.mu.stopped = a == Stop
	return a
}

// needsSpace names the operations that fail on a full disk.
var needsSpace = map[string]bool{
	"create": true, "write": true, "sync": true, "link": true, "mkdir": true, "lock": true, "commit": true,
}

// do makes one operation that cannot be torn.
func (f *Faults) do(name, path string, op func() error) error {
	var err error
	switch a := f.next(name, path); {
	case a == Stop:
		err = ErrCrashed
	case a == Fail || a == Tear:
		err = ErrInjected
	case a == Full && needsSpace[name]:
		err = syscall.ENOSPC
	case a == After:
		if err := op(); err != nil {
			return err
		}
		err = ErrInjected
	default:
		return op()
	}
	return fmt.Errorf("%s %s: %w", name, path, err)
}

// write makes one write, which can be torn.
func (f *Faults) write(path string, p []byte, op func([]byte) (int, error)) (n int, err error) {
	a := f.next("write", path)
	switch a {
	case Stop:
		return 0, fmt.Errorf("write %s: %w", path, ErrCrashed)
	case Fail:
		return 0, fmt.Errorf("write %s: %w", path, ErrInjected)
	case Pass:
		return op(p)
	case After:
		n, err = op(p)
	default: // Tear and Full
		n, err = op(p[:len(p)/2])
	}
	if err != nil {
		return n, err
	}
	if a == Full {
		return n, fmt.Errorf("write %s: %w", path, syscall.ENOSPC)
	}
	return n, fmt.Errorf("write %s: %w", path, ErrInjected)
}
