package store

import "context"

// Middleware runs an operation of a store, for example with a timeout, with retries or with a measurement of its time. What begins with one
// of the verbs read, create, replace, update and list, and names the key or the prefix.
type Middleware func(ctx context.Context, what string, operation func(context.Context) error) error

// Around wraps a store with a middleware. A listing is one operation per page.
func Around(store Store, do Middleware) Store { return around{store, do} }

type around struct {
	Store
	do Middleware
}

func (a around) Get(ctx context.Context, key string) (data []byte, err error) {
	err = a.do(ctx, "read "+key, func(ctx context.Context) error {
		data, err = a.Store.Get(ctx, key)
		return err
	})
	return data, err
}

func (a around) Create(ctx context.Context, key string, data []byte) error {
	return a.do(ctx, "create "+key, func(ctx context.Context) error { return a.Store.Create(ctx, key, data) })
}

func (a around) Replace(ctx context.Context, key string, data []byte) error {
	return a.do(ctx, "replace "+key, func(ctx context.Context) error { return a.Store.Replace(ctx, key, data) })
}

func (a around) Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error {
	return a.do(ctx, "update "+key, func(ctx context.Context) error { return a.Store.Update(ctx, key, change) })
}

func (a around) List(ctx context.Context, prefix string) ([]string, error) {
	return ListAfter(ctx, a, prefix, "")
}

func (a around) Page(ctx context.Context, prefix, after string) (keys []string, more bool, err error) {
	err = a.do(ctx, "list "+prefix, func(ctx context.Context) error {
		keys, more, err = a.Store.Page(ctx, prefix, after)
		return err
	})
	return keys, more, err
}
