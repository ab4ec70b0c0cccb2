//go:build !linux

package instrument

import "errors"

var errOther = errors.New("profiles need Linux")

// Check implements Instrument.
func (*Profiler) Check() ([]string, error) { return nil, errOther }

// Start implements Instrument.
func (*Profiler) Start(func() (int, error)) (Session, error) { return nil, errOther }
