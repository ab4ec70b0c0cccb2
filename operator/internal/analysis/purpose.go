package analysis

import "assay.dev/assay/operator/internal/record"

// Blocks run for a purpose, and what was planned after looking at the results must not be mixed into what was looked at. A
// block that no known wave planned screens: before waves had purposes, all did.

// only selects the blocks that ran for a purpose.
func (s *selection) only(purpose record.Purpose) func(block string) bool {
	return func(block string) bool {
		found, ok := s.purposes[block]
		return found == purpose || !ok && purpose == record.Screen
	}
}

// has reports whether a block was planned for a purpose.
func (s *selection) has(purpose record.Purpose) bool {
	for _, found := range s.purposes {
		if found == purpose {
			return true
		}
	}
	return false
}

// hasOther reports whether a block was planned for another purpose.
func (s *selection) hasOther(purpose record.Purpose) bool {
	for _, found := range s.purposes {
		if found != purpose {
			return true
		}
	}
	return false
}
