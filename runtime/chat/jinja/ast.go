package jinja

// expr is an expression; eval leaves the place of an error in st.at.
type expr interface{ eval(st *state) Value }

// stmt is what stands between tags, or a tag with its body.
type stmt interface{ exec(st *state) control }

// control says how a statement ended.
type control uint8

const (
	goOn control = iota
	nextItem
	leaveLoop
)

type (
	constExpr struct{ v Value }
	nameExpr  struct {
		at   int
		name string
	}
	listExpr struct {
		kind  listKind
		items []expr
	}
	dictExpr struct {
		at           int
		keys, values []expr
	}
	attrExpr struct {
		at   int
		of   expr
		name string
	}
	itemExpr struct {
		at        int
		of, index expr
	}
	sliceExpr struct {
		at    int
		of    expr
		parts [3]expr // nil: left out
	}
	callExpr struct {
		at   int
		fn   expr
		args argList
	}
	filterExpr struct {
		at   int
		of   expr
		name string
		args argList
	}
	testExpr struct {
		at   int
		of   expr
		name string
		args argList
	}
	notExpr  struct{ x expr }
	signExpr struct {
		at  int
		neg bool
		x   expr
	}
	// logicExpr is a chain of or (until true) or of and (until false).
	logicExpr struct {
		until bool
		items []expr
	}
	concatExpr struct{ items []expr }
	operand    struct {
		at int
		op string
		x  expr
	}
	mathExpr struct {
		first expr
		rest  []operand
	}
	compareExpr struct {
		first expr
		rest  []operand
	}
	condExpr struct {
		at            int
		cond, yes, no expr // no may be nil
	}
	// captured is the text of the block that a filter applies to.
	captured struct{}
)

// argList is the arguments of a call, a filter or a test.
type argList struct {
	plain           []expr
	names           []string
	named           []expr
	rest, restNamed expr // *x and **x
}

type (
	dataStmt  struct{ text string }
	printStmt struct{ x expr }
	arm       struct {
		cond expr
		body []stmt
	}
	ifStmt struct {
		arms      []arm
		otherwise []stmt
	}
	forStmt struct {
		at              int
		target          target
		over            expr
		test            expr // may be nil
		recursive       bool
		body, otherwise []stmt
	}
	jumpStmt struct{ to control }
	setStmt  struct {
		at     int
		target target
		value  expr
	}
	setBlockStmt struct {
		at      int
		target  target
		filters expr // over captured; may be nil
		body    []stmt
	}
	macroStmt struct{ def *macroDef }
	callStmt  struct {
		call   *callExpr
		caller *macroDef
	}
	filterBlockStmt struct {
		filters expr // over captured
		body    []stmt
	}
	withStmt struct {
		at      int
		targets []target
		values  []expr
		body    []stmt
	}
)

// param is a parameter of a macro.
type param struct {
	name string
	def  expr // nil: none
}

// macroDef is a macro as written.
type macroDef struct {
	name   string
	params []param
	body   []stmt
	uses   map[string]bool // names that it reads
}

// target is what a value can be assigned to.
type target interface {
	assign(st *state, at int, v Value)
}

type (
	nameTarget struct{ name string }
	attrTarget struct {
		at         int
		name, attr string
	}
	tupleTarget struct {
		at    int
		items []target
	}
)
