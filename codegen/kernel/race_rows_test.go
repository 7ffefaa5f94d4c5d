package kernel

import "testing"

// TestRareRowsAreGivenBack checks that workgroups take the rows of those before, without what these knew.
func TestRareRowsAreGivenBack(t *testing.T) {
	d := &detector{nodes: []int32{0}, shared: []shadow{{grain: 1}}}
	for group := range 5 {
		d.begin(32, 32, []int{4})
		for i := range 3 {
			few := d.rareOf(&d.shared[0].cells[i])
			if few.last.time != 0 || few.releases != nil {
				t.Fatalf("workgroup %d knows what one before did", group)
			}
			few.last.time, few.releases = d.now(), []release{{}}
		}
	}
	if len(d.rare) != 3 || len(d.free) != 0 {
		t.Errorf("%d rows, %d free, for 3 cells", len(d.rare), len(d.free))
	}
}
