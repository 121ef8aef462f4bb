package servicetest

// Invisible are texts that show nothing, by what they are made of. models has the whole definition.
var Invisible = map[string]string{
	"white space":        " \t\u00a0\u3000\n",
	"a zero-width space": "\u200b",
	"a Hangul filler":    "\u3164",
	"a braille blank":    "\u2800",
	"several kinds":      "\u00ad \ufe0f\U000e0041\u202e\u034f\ufeff",
}
