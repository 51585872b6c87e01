// Package jsonobject takes the JSON object of a request apart, field by field.
//
// encoding/json alone would accept names in another case, repeated names, a null
// for anything and text behind the object. Here each field is asked for by its exact
// name and type, and what nobody asked for is refused by name:
//
//	o := jsonobject.Parse(data)
//	name := o.Required("name")
//	count, given := o.Long("count")
//	if err := o.Done(); err != nil { … }
//
// The first thing that is wrong stays and is what Done returns, so that the fields
// can be read without looking at errors in between. Messages hold the start of a
// value that was refused: no secret may be read with this package.
package jsonobject
