package api

import "context"

// Library is where models lie that clients may have fetched and deleted.
type Library interface {
	// Pull fetches the model of that name, and serves it from then on. Progress is called as it goes.
	Pull(ctx context.Context, name string, progress func(Pulling)) error
	// Delete deletes the files of a served model, and serves it no more. Errors are for people.
	Delete(ctx context.Context, name string) error
}

// Pulling is how far a fetch is.
type Pulling struct {
	Step        string // what is done, for people
	File        string // that is at work; "" for none
	Done, Total int64  // bytes
}

var errNoLibrary = &Error{Kind: forbidden, Code: "no_library", Message: "this server neither fetches nor deletes models: start it with a models folder, as zincrun serve DIR"}
