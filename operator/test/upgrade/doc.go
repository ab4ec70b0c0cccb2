// Package upgrade changes the definitions of the API from the previous release to this one and back, under objects that the previous
// release accepted, and reads its ledgers. The file previous has the commit of that release.
package upgrade
