package attacks

// The promises that most attacks are about, in the words of docs/threat-model.md.
const (
	storePromise    = "The keys of a run namespace reach the ledgers of that namespace only, and can change neither what was planned nor who had a node, nor delete anything"
	versionsPromise = "What is written over in the bundled store is kept, and the keys of a run namespace cannot take it away"
	operatorStore   = "The operator writes nothing that was measured, and no analysis"
	replacedPromise = "Keys that are replaced, and those of a namespace that is taken away, are worth nothing"
	readerPromise   = "Who reads a report needs no key that writes"
	metricsPromise  = "The bundled store's metrics are for the token of a user who may do nothing else"
	storeGuard      = "operator/internal/storeusers/policy.go"
)

// All are the attacks, in the order in which they are tried.
var All = []Attack{
	{"another namespace's ledger is read", storePromise, storeGuard, readsAnother, Store},
	{"another namespace's ledger is listed", storePromise, storeGuard, listsAnother, Store},
	{"another namespace's ledger is written and deleted", storePromise, storeGuard, writesAnother, Store},
	{"what was planned is written over", storePromise, storeGuard, writesThePlan, Store},
	{"the store's users and policies are changed", storePromise, storeGuard, makesUsers, Store},
	{"what was measured is deleted, and its versions", versionsPromise, storeGuard, deletesItsOwn, Store},
	{"the bucket is made to forget", versionsPromise, storeGuard, makesTheStoreForget, Store},
	{"the operator's key writes what was measured", operatorStore, storeGuard, operatorMeasures, Store},
	{"a key is kept beyond its replacement", replacedPromise, storeGuard, keepsAKeyThatIsReplaced, Store},
	{"a reader's key writes a verdict", readerPromise, storeGuard, readerWrites, Store},
	{"the store's metrics with another's token", metricsPromise, storeGuard, readsTheStoresMetrics, Store},
}
