package pull

import "regexp"

// matches says whether err is as the pattern says; without one there is none.
func matches(err error, pattern string) bool {
	if pattern == "" || err == nil {
		return pattern == "" && err == nil
	}
	return regexp.MustCompile(pattern).MatchString(err.Error())
}
