package kernels

// RoomToSplit returns the width of the room that the site's projections want for sums of
// workgroups that share the elements of a row, 0 if they want none.
func RoomToSplit(s *Site) int {
	if k := matchFixed(s); k != nil {
		return k.roomWidth()
	}
	return roomForDealt(s)
}
