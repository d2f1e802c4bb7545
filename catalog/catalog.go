// Package catalog knows the databases, tables, schemas, options and ids of a
// Varve. It keeps them as an edit log in the object store, so losing the
// machine but not the bucket loses nothing.
//
// Readers look at an immutable View and are never blocked. Writers take turns:
// each Update becomes one edit, which is durable before anyone sees it.
package catalog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// Options tunes a Catalog. A zero field means its default.
type Options struct {
	MaxDatabases    int          // databases; 10,000
	MaxTables       int          // tables in all databases; 1,000,000
	MaxColumns      int          // columns of one table; 4,096
	CheckpointEdits int          // edits after which the whole catalog is written; 256
	Logger          *slog.Logger // slog.Default()
}

func (o Options) withDefaults() Options {
	o.MaxDatabases = cmp.Or(o.MaxDatabases, 10_000)
	o.MaxTables = cmp.Or(o.MaxTables, 1_000_000)
	o.MaxColumns = cmp.Or(o.MaxColumns, 4096)
	o.CheckpointEdits = cmp.Or(o.CheckpointEdits, 256)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// A durableLog keeps the edits. Everything the catalog asks of its storage is
// here, so that another one (etcd) can take its place.
type durableLog interface {
	// Append makes an edit durable, or fails if another writer has taken over.
	Append(ctx context.Context, edit []byte) error
	// Checkpoint makes the state after all edits so far durable, in their
	// place.
	Checkpoint(ctx context.Context, state []byte) error
}

// A Catalog is an open catalog. It is safe for use by several goroutines, and
// it is a table.Resolver.
type Catalog struct {
	opts Options
	log  durableLog // nil: in memory only
	view atomic.Pointer[View]

	turn  chan struct{} // holds one token, which an Update takes
	edits int           // since the last checkpoint; of whoever has the token
}

var _ table.Resolver = (*Catalog)(nil)

// NewMemory returns an empty catalog that is kept nowhere: for tests.
func NewMemory(opts Options) *Catalog {
	return newCatalog(opts.withDefaults(), nil, emptyView())
}

func newCatalog(opts Options, log durableLog, view *View) *Catalog {
	c := &Catalog{opts: opts, log: log, turn: make(chan struct{}, 1)}
	c.view.Store(view)
	c.turn <- struct{}{}
	return c
}

// View returns the catalog as it is now.
func (c *Catalog) View() *View { return c.view.Load() }

// Update runs change and makes everything it did durable as one edit. If
// change fails, nothing is done. It may be called while readers look at the
// catalog, and returns once they see the new one.
//
// Updates are serialised; change must not start another. One that waits for
// its turn gives up at the end of ctx. One that has begun to write ignores it,
// so that its outcome is known.
func (c *Catalog) Update(ctx context.Context, change func(*Txn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-c.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.turn <- struct{}{} }()
	txn := &Txn{View: c.View(), limits: c.opts}
	if err := change(txn); err != nil {
		return err
	}
	if len(txn.ops) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if err := c.append(ctx, txn.ops); err != nil {
		return err
	}
	c.view.Store(txn.View) // before the checkpoint: readers need not wait for it
	if c.log != nil && c.edits >= c.opts.CheckpointEdits {
		// The edit stands whether or not a checkpoint can be written; if not,
		// the next edit tries again.
		if err := c.checkpoint(ctx, txn.View); err != nil {
			c.opts.Logger.Warn("catalog: checkpoint failed", "edits", c.edits, "error", err)
		}
	}
	return nil
}

// append makes an edit durable. The caller has the turn.
func (c *Catalog) append(ctx context.Context, ops []op) error {
	if c.log == nil {
		return nil
	}
	data, err := encodeEdit(ops)
	if err != nil {
		return fmt.Errorf("encode catalog edit: %w", err)
	}
	if err := c.log.Append(ctx, data); err != nil {
		return fault.Wrap(fault.Unavailable, fmt.Errorf("write catalog edit: %w", err))
	}
	c.edits++
	return nil
}

// checkpoint makes the whole catalog durable in place of its edits. The caller
// has the turn.
func (c *Catalog) checkpoint(ctx context.Context, v *View) error {
	data, err := encodeCheckpoint(v)
	if err != nil {
		return fmt.Errorf("encode catalog checkpoint: %w", err)
	}
	if err := c.log.Checkpoint(ctx, data); err != nil {
		return err
	}
	c.edits = 0
	return nil
}

// Databases returns every database, sorted by name.
func (c *Catalog) Databases() []*Database { return c.View().Databases() }

// Database returns the database of this name; a missing one is a
// fault.DatabaseMissing.
func (c *Catalog) Database(name string) (*Database, error) { return c.View().Database(name) }

// Table returns the table of exactly this name, as View.Table does.
func (c *Catalog) Table(db, name string) (*table.Info, error) { return c.View().Table(db, name) }

// Resolve returns the table that an unquoted name means, as View.Resolve does.
func (c *Catalog) Resolve(db, name string) (*table.Info, error) { return c.View().Resolve(db, name) }

// TableByID returns the table, or false if it does not exist (any more).
func (c *Catalog) TableByID(id table.ID) (*table.Info, bool) { return c.View().TableByID(id) }

// Tables returns the tables of a database, sorted by name.
func (c *Catalog) Tables(db string) ([]*table.Info, error) { return c.View().Tables(db) }

// CreateDatabase makes a database, as Txn.CreateDatabase does, in an edit of
// its own; so do the methods below.
func (c *Catalog) CreateDatabase(ctx context.Context, name string, ifNotExists bool, options map[string]string) error {
	return c.Update(ctx, func(t *Txn) error { return t.CreateDatabase(name, ifNotExists, options) })
}

// DropDatabase removes a database with its tables, which it returns so that
// their data can be dropped.
func (c *Catalog) DropDatabase(ctx context.Context, name string) (dropped []*table.Info, err error) {
	err = c.Update(ctx, func(t *Txn) (err error) {
		dropped, err = t.DropDatabase(name)
		return err
	})
	return dropped, err
}

// CreateTable makes a table.
func (c *Catalog) CreateTable(ctx context.Context, spec Spec, ifNotExists bool) (info *table.Info, created bool, err error) {
	err = c.Update(ctx, func(t *Txn) (err error) {
		info, created, err = t.CreateTable(spec, ifNotExists)
		return err
	})
	return info, created, err
}

// AddColumns gives a table the columns that it lacks and returns it.
func (c *Catalog) AddColumns(ctx context.Context, id table.ID, columns []table.Column) (info *table.Info, err error) {
	err = c.Update(ctx, func(t *Txn) (err error) {
		info, err = t.AddColumns(id, columns)
		return err
	})
	return info, err
}

// DropTable removes a table, which it returns so that its data can be dropped.
func (c *Catalog) DropTable(ctx context.Context, db, name string) (dropped *table.Info, err error) {
	err = c.Update(ctx, func(t *Txn) (err error) {
		dropped, err = t.DropTable(db, name)
		return err
	})
	return dropped, err
}
