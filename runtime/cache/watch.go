package cache

// Watcher is told which pieces prompts can go on behind: those that were left at their end or below, of models with
// recurrent state those that have a state there. It must return at once.
type Watcher interface {
	// Cuts says where pieces end, before the first of them: a piece lies between two neighbours.
	Cuts(cuts []int)
	// Stored is called when there is a piece more; the piece before it is known.
	Stored(Piece)
	// Removed is called when there is none of this ID any more. No piece behind it is known.
	Removed(id uint64)
}

// Piece is a node as others know it.
type Piece struct {
	ID     uint64 // of all that a tree ever has
	Parent uint64 // the ID of the piece before it; 0: it is the first one
	Owner  string
	Tokens []int32 // for the receiver to keep
}

// tell has the watcher know the node, and those above it.
func (n *node) tell() {
	if n.tree.o.Watch == nil || n.parent == nil || n.told {
		return
	}
	n.parent.tell()
	n.told = true
	tokens := make([]int32, len(n.key)/4)
	copy(bytesOf(tokens), n.key)
	n.tree.o.Watch.Stored(Piece{ID: n.id, Parent: n.parent.id, Owner: n.owner, Tokens: tokens})
}

// gone has the watcher forget the node, behind which it knows none.
func (n *node) gone() {
	if !n.told {
		return
	}
	n.told = false
	n.tree.o.Watch.Removed(n.id)
}
