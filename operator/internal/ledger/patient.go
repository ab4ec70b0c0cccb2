package ledger

import "context"

// Patient is a store whose operations are tried again. What was written by a try whose answer was lost is found by the next one: an object
// that is created is then there with the same content, and no error.
func Patient(store Store, again *Again) Store {
	out := patient{store, again}
	if versioned, ok := store.(Versioned); ok {
		return patientVersions{out, versioned}
	}
	return out
}

type patient struct {
	Store
	again *Again
}

func (p patient) Get(ctx context.Context, key string) (data []byte, err error) {
	err = p.again.Do(ctx, "read "+key, func() error {
		data, err = p.Store.Get(ctx, key)
		return err
	})
	return data, err
}

func (p patient) Create(ctx context.Context, key string, data []byte) error {
	tries := 0
	return p.again.Do(ctx, "write "+key, func() error {
		if tries++; tries > 1 {
			return EnsureCreated(ctx, p.Store, key, data)
		}
		return p.Store.Create(ctx, key, data)
	})
}

func (p patient) Replace(ctx context.Context, key string, data []byte) error {
	return p.again.Do(ctx, "write "+key, func() error { return p.Store.Replace(ctx, key, data) })
}

func (p patient) Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error {
	return p.again.Do(ctx, "update "+key, func() error { return p.Store.Update(ctx, key, change) })
}

func (p patient) List(ctx context.Context, prefix string) ([]string, error) {
	return ListAfter(ctx, p, prefix, "")
}

func (p patient) Page(ctx context.Context, prefix, after string) (keys []string, more bool, err error) {
	err = p.again.Do(ctx, "list "+prefix, func() error {
		keys, more, err = p.Store.Page(ctx, prefix, after)
		return err
	})
	return keys, more, err
}

func (p patient) Check(ctx context.Context) error {
	return p.again.Do(ctx, "look for the bucket", func() error { return p.Store.Check(ctx) })
}

type patientVersions struct {
	patient
	versioned Versioned
}

func (p patientVersions) Firsts(ctx context.Context, prefix string) (firsts map[string]string, err error) {
	err = p.again.Do(ctx, "list versions of "+prefix, func() error {
		firsts, err = p.versioned.Firsts(ctx, prefix)
		return err
	})
	return firsts, err
}

func (p patientVersions) GetVersion(ctx context.Context, key, version string) (data []byte, err error) {
	err = p.again.Do(ctx, "read "+key, func() error {
		data, err = p.versioned.GetVersion(ctx, key, version)
		return err
	})
	return data, err
}
