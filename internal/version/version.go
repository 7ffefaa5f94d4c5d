// Package version has the release that this tree becomes.
package version

// Release is in plans and in what --version prints.
const Release = "0.1.0"
