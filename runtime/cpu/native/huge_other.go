//go:build !linux

package native

func advise([]byte) {} // these systems choose pages themselves
