package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// strftime formats a time as C does in the locale C. A - behind the % leaves
// out leading zeros.
func strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		short := format[i] == '-' && i+1 < len(format)
		if short {
			i++
		}
		text, ok := timeField(format[i], t)
		if !ok {
			b.WriteString("%" + format[i:i+1])
			continue
		}
		if trimmed := strings.TrimLeft(text, "0 "); short && trimmed != "" {
			text = trimmed
		} else if short {
			text = "0"
		}
		b.WriteString(text)
	}
	return b.String()
}

func timeField(c byte, t time.Time) (string, bool) {
	if layout, ok := timeLayouts[c]; ok {
		return t.Format(layout), true
	}
	hour := (t.Hour()+11)%12 + 1
	year, week := t.ISOWeek()
	switch c {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'I':
		return fmt.Sprintf("%02d", hour), true
	case 'l':
		return fmt.Sprintf("%2d", hour), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay()), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'w':
		return strconv.Itoa(int(t.Weekday())), true
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7), true
	case 'V':
		return fmt.Sprintf("%02d", week), true
	case 'G':
		return strconv.Itoa(year), true
	}
	return "", false
}

var timeLayouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'd': "02", 'e': "_2", 'm': "01", 'y': "06", 'Y': "2006",
	'H': "15", 'M': "04", 'S': "05", 'p': "PM", 'Z': "MST", 'z': "-0700", 'D': "01/02/06", 'F': "2006-01-02", 'T': "15:04:05",
	'R': "15:04", 'r': "03:04:05 PM", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}
