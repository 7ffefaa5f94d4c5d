// Package hostile keeps attacks on the compiler, the runtime and the server: its tests are what somebody did who meant
// harm, and hold that it is refused or harmless. One file has the attacks on one thing that we take from elsewhere.
package hostile
