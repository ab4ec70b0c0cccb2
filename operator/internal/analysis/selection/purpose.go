package selection

import "assay.dev/assay/operator/internal/record"

// Blocks run for a purpose, and what was planned after looking at the results must not be mixed into what was looked at. A
// block that no known wave planned screens: before waves had purposes, all did.

// Only selects the blocks that ran for a purpose.
func (s *Selection) Only(purpose record.Purpose) func(block string) bool {
	return func(block string) bool {
		found, ok := s.Purposes[block]
		return found == purpose || !ok && purpose == record.Screen
	}
}

// Has reports whether a block was planned for a purpose.
func (s *Selection) Has(purpose record.Purpose) bool {
	for _, found := range s.Purposes {
		if found == purpose {
			return true
		}
	}
	return false
}

// HasOther reports whether a block was planned for another purpose.
func (s *Selection) HasOther(purpose record.Purpose) bool {
	for _, found := range s.Purposes {
		if found != purpose {
			return true
		}
	}
	return false
}
