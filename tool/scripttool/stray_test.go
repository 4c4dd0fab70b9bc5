package scripttool

const strayArgument = "stray-child"

func stray() int { return 0 }
