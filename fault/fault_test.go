package fault_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/varvedb/varve/fault"
)

func TestKindOf(t *testing.T) {
	f := func(err error, want fault.Kind) {
		t.Helper()
		if got := fault.KindOf(err); got != want {
			t.Errorf("kind of %v is %d, want %d", err, got, want)
		}
	}
	notFound := fault.Errorf(fault.TableNotFound, "table %q does not exist", "cpu")
	f(notFound, fault.TableNotFound)
	f(fmt.Errorf("scan: %w", notFound), fault.TableNotFound)
	f(fault.Wrap(fault.Plan, notFound), fault.Plan) // the outermost mark counts
	f(errors.New("disk on fire"), fault.Internal)
	f(fmt.Errorf("query: %w", context.DeadlineExceeded), fault.Timeout)
	f(fmt.Errorf("query: %w", context.Canceled), fault.Cancelled)
	f(fault.Wrap(fault.Unavailable, context.DeadlineExceeded), fault.Unavailable)
}

func TestWrapKeepsNil(t *testing.T) {
	if err := fault.Wrap(fault.Invalid, nil); err != nil {
		t.Errorf("Wrap(nil) = %v", err)
	}
}

func TestPermanentErrorsAreNotRetryable(t *testing.T) {
	f := func(kind fault.Kind, want bool) {
		t.Helper()
		if got := fault.Retryable(fault.Errorf(kind, "x")); got != want {
			t.Errorf("kind %d retryable = %v", kind, got)
		}
	}
	f(fault.Invalid, false)
	f(fault.TooLarge, false)
	f(fault.Unavailable, true)
	f(fault.Internal, true)
}
