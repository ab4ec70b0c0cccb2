//! Every cell of the table of adapters by classes of misreading is closed.

mod table;

#[test]
fn every_adapter_answers_every_class_of_misreading() {
    let (open, all) = table::open_cells();
    assert!(all >= 8 * 14, "{all} cells");
    assert!(open.is_empty(), "{} of {all} cells are open:\n{}", open.len(), open.join("\n"));
}
