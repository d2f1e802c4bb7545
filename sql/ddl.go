package sql

import (
	"cmp"
	"context"
	"encoding/hex"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

func (e *Engine) createDatabase(ctx context.Context, n createDatabase) error {
	return e.opts.Catalog.CreateDatabase(ctx, n.name, n.ifNotExists, optionMap(n.options))
}

func (e *Engine) createTable(ctx context.Context, s *Session, n createTable) error {
	database, err := e.opts.Catalog.Database(cmp.Or(n.name.database.text, s.database()))
	if err != nil {
		return err
	}
	spec := catalog.Spec{Database: database.Name, Name: n.name.table.text, Comment: n.comment, Key: keyOf(n.columns)}
	for _, c := range n.columns {
		column := table.Column{Name: c.name, Type: c.typ, Role: c.role, Nullable: !c.notNull, Comment: c.comment}
		if c.fallback != nil {
			if column.Default, err = defaultText(*c.fallback, column, s); err != nil {
				return err
			}
		}
		spec.Columns = append(spec.Columns, column)
	}
	spec.Options, spec.Merge = database.Inherit(optionMap(n.options), table.LastRow)
	if comment, ok := spec.Options["comment"]; ok {
		spec.Comment = comment
		delete(spec.Options, "comment")
	}
	_, _, err = e.opts.Catalog.CreateTable(ctx, spec, n.ifNotExists)
	return err
}

// keyOf returns the names of the tags in primary-key order.
func keyOf(columns []columnDef) []string {
	var key []string
	for _, c := range columns {
		if c.role == table.Tag {
			key = append(key, "")
		}
	}
	for _, c := range columns {
		if c.role == table.Tag {
			key[c.keyIndex] = c.name
		}
	}
	return key
}

func optionMap(options []option) map[string]string {
	if len(options) == 0 {
		return nil
	}
	m := make(map[string]string, len(options))
	for _, o := range options {
		m[o.key] = o.value
	}
	return m
}

// defaultText returns the text of a default as the catalog keeps it: a literal
// of the column's type that means the same in every session, or now().
func defaultText(v value, column table.Column, s *Session) (string, error) {
	c := columnBuilder{Column: &column}
	if err := c.append(v, &converter{zone: s.zone(), now: s.now()}); err != nil {
		return "", fault.Errorf(fault.Invalid, "DEFAULT of %w", err)
	}
	typ := column.Type
	switch {
	case v.kind == nowKind && (typ.IsTimestamp() || typ == table.Date), typ.IsTimestamp() && v.kind == textKind && isNow(v.text):
		return "now()", nil
	case (typ.IsTimestamp() || typ == table.Date) && v.kind == textKind:
		return quoteText(table.FormatTime(c.Ints[0], typ)), nil
	case v.kind == bytesKind:
		return "x" + quoteText(hex.EncodeToString([]byte(v.text))), nil
	case v.kind == textKind, typ == table.String:
		return quoteText(string(c.Data)), nil
	default:
		return v.text, nil
	}
}

func (e *Engine) dropTable(ctx context.Context, s *Session, n dropTable) error {
	var found []*table.Info
	for _, name := range n.names { // all are looked up before the first is gone
		info, err := e.resolve(s, name)
		switch {
		case err == nil:
			found = append(found, info)
		case skipMissing(err, n.ifExists) != nil:
			return err
		}
	}
	var dropped []*table.Info
	err := e.opts.Catalog.Update(ctx, func(t *catalog.Txn) error {
		for _, info := range found {
			gone, err := t.DropTable(info.Database, info.Name)
			if err := skipMissing(err, n.ifExists); err != nil {
				return err
			}
			if gone != nil {
				dropped = append(dropped, gone)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.forget(ctx, dropped...)
	return nil
}

func (e *Engine) dropDatabase(ctx context.Context, n dropDatabase) error {
	dropped, err := e.opts.Catalog.DropDatabase(ctx, n.name.text)
	if err != nil {
		return skipMissing(err, n.ifExists)
	}
	e.forget(ctx, dropped...)
	return nil
}
