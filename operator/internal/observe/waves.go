package observe

import (
	"encoding/json"
	"reflect"

	"assay.dev/assay/operator/internal/record"
)

// past returns the part of an earlier wave that decisions need: its blocks, their nodes and cells. The commands of its cells, which may
// take a megabyte, are only needed by its runner, and a run may have thousands of waves. Parts that equal those of the wave before are
// shared with it; bytes is the size of the rest as JSON.
func past(wave, before *record.Wave) (kept record.Wave, bytes int, err error) {
	kept = record.Wave{
		Schema: wave.Schema, Run: wave.Run, Experiment: wave.Experiment, Wave: wave.Wave, Purpose: wave.Purpose, Arms: wave.Arms,
		Blocks: wave.Blocks,
	}
	for _, point := range wave.Points {
		kept.Points = append(kept.Points, record.Point{Key: point.Key})
	}
	for _, cell := range wave.Cells {
		kept.Cells = append(kept.Cells, record.Cell{Point: cell.Point, Arm: cell.Arm, Build: cell.Build})
	}
	own := kept
	if before != nil && reflect.DeepEqual(kept.Points, before.Points) && reflect.DeepEqual(kept.Cells, before.Cells) &&
		reflect.DeepEqual(kept.Arms, before.Arms) {
		kept.Points, kept.Cells, kept.Arms = before.Points, before.Cells, before.Arms
		own.Points, own.Cells, own.Arms = nil, nil, nil
	}
	raw, err := json.Marshal(own)
	return kept, len(raw), err
}

// add adds a wave with its size as JSON, and reduces the one before to the part that decisions need. Older copies are not changed.
func (r *remembered) add(wave *record.Wave, bytes int) error {
	number := len(r.waves)
	r.waves = append(r.waves[:number:number], *wave)
	if last := number - 1; last >= 0 {
		var before *record.Wave
		if last > 0 {
			before = &r.waves[last-1]
		}
		kept, left, err := past(&r.waves[last], before)
		if err != nil {
			return err
		}
		r.waves[last] = kept
		r.planBytes += left - r.newestBytes
	}
	r.planBytes, r.newestBytes = r.planBytes+bytes, bytes
	return nil
}
