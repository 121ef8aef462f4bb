package servicetest

// Invisible are strings without a visible character, by their contents. models defines all of them.
var Invisible = map[string]string{
	"white space":        " \t\u00a0\u3000\n",
	"a zero-width space": "\u200b",
	"a Hangul filler":    "\u3164",
	"a braille blank":    "\u2800",
	"several kinds":      "\u00ad \ufe0f\U000e0041\u202e\u034f\ufeff",
}
