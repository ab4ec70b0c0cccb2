// Package causes has the test that every view of a broken run states its first cause.
package causes
