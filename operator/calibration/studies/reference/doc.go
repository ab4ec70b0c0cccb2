// Package reference resolves references of pages to the cells of tables, and renders the text of each reference from its cells.
//
// A reference is a reference link of Markdown whose label names a cell:
//
//	It waits [44.0 ms][run-document: read frame (us), batch-1].
//
// A label is a source, a colon and an expression:
//
//	run-document: COLUMN, ROW           a cell of the study's own table of results/local/run-document
//	cluster/run: COLUMN, ROW            the same of results/cluster/run
//	run/inserts: COLUMN, ROW            of several tables of a run, this one
//	run/gates: estimate, GATE, ARM      a table of the run's report, by its heading
//	run: verdict                        also machine and date; the date is that of the first attempt in the ledger
//	run/counters: NAME, ROW             the median of a counter of the run's trials, from the archive of its ledger
//	run.yaml: FIELD                     a setting of a run: the values of a field, or the bound of a gate
//	claims: ID                          a place of the study's document, quoted in document/claims.yaml
//	figures: NAME, MACHINE              a row of the page's table of figures, which workflows/figures/published has as data
//	code: NAME                          a constant of the workload's crate, such as 3 for REPLICAS; keys::toy::BYTES if there are several
//	flags: NAME                         the default, limits and choices of a flag in the page's table of parameters
//	rms24-batching/run: …               from the page of a workload, the run of a study
//
// A row is named by the values of its cells, such as batch-1 or nodelay=true, and several by a|b. Cells combine by "over", the quotient,
// and "minus", the difference. A label may end in a condition, such as "below 1" or "at least 0.5", which has to hold; below, above and
// spans speak of the whole interval. Numbers, intervals in brackets, verdicts, dates and machines in the text of a reference are replaced
// by those of its cells, with the digits and the unit of the text. A number in words, such as half, is compared with its cell.
//
// [Library.Render] writes the references of a page anew and appends the definitions of their labels. It also fills <!-- runs -->, with the
// runs of a study and their gates, and <!-- parameters TEMPLATE -->, with the flags of a workload. [Library.Unreferenced] lists the
// numbers, machines, verdicts and comparisons of a page that are no references. [Library.Explanations] checks causal sentences and claims
// in bold.
package reference
