// The bridge between a script and its host. It runs before the script, takes the host's functions off the global object,
// and keeps what it needs of the language, so that a script that changes the language changes it for itself only. Nothing
// but strings, numbers and booleans goes to the host. It returns the functions that the host calls.
"use strict";
const host = { call: hostCall, print: hostPrint, suggest: hostSuggest, returned: hostReturned, failed: hostFailed };
const names = JSON.parse(hostNames);
for (const name of ["hostCall", "hostPrint", "hostSuggest", "hostReturned", "hostFailed", "hostNames", "Atomics",
  "SharedArrayBuffer", "performance", "queueMicrotask", "gc", "print"]) {
  delete globalThis[name];
}

const { stringify, parse } = JSON;
const { Error, TypeError, Promise, Proxy, String, Map, Set, Array } = globalThis;
const { create, freeze, defineProperty, hasOwn, prototype: objectPrototype } = Object;
const { apply } = Reflect;
const { then } = Promise.prototype;
const isArray = Array.isArray;
const arrayFrom = Array.from;
const maxArguments = 1 << 20;

const pending = create(null);
let calls = 0;

// plain makes values that JSON does not know into values that it knows.
const plain = (key, value) => {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Map || value instanceof Set) return arrayFrom(value);
  return value;
};

const begin = (name, args, extra) => new Promise((resolve, reject) => {
  // Made here, where the script still stands on the stack, it knows the line of the call.
  const failure = new Error();
  if (args === undefined) args = {};
  if (extra > 1 || args === null || typeof args !== "object" || isArray(args)) {
    throw new TypeError("tools." + name + " takes one object with its arguments");
  }
  const text = stringify(args, plain);
  if (typeof text !== "string" || text[0] !== "{") throw new TypeError("the arguments of tools." + name + " are no object");
  if (text.length > maxArguments) throw new TypeError("the arguments of tools." + name + " are longer than 1 MB");
  const id = ++calls;
  pending[id] = { __proto__: null, resolve, reject, failure };
  host.call(id, name, text);
});

const table = create(null);
for (const name of names) {
  const f = function (args) { return begin(name, args, arguments.length); };
  defineProperty(f, "name", { value: name });
  table[name] = freeze(f);
}
// A name that is no identifier can be called by one that is; the first of several that would be alike has it.
for (const name of names) {
  const alias = name.replace(/[^A-Za-z0-9_]/g, "_");
  if (!(alias in table)) defineProperty(table, alias, { value: table[name], enumerable: false });
}

const tools = new Proxy(freeze(table), {
  __proto__: null,
  get(target, key) {
    if (typeof key !== "string" || key in target) return target[key];
    if (key === "then" || key === "toJSON" || hasOwn(objectPrototype, key)) return undefined;
    throw new TypeError(host.suggest(key));
  },
});

// places makes the stack of an error into the lines of the script.
const places = (stack) => {
  if (typeof stack !== "string") return "";
  let shown = "";
  for (const frame of stack.split("\n")) {
    const at = frame.indexOf("<eval>:");
    if (at >= 0) shown += (shown ? ", line " : " (line ") + parseInt(frame.slice(at + 7), 10);
  }
  return shown && shown + ")";
};

const show = (value) => {
  if (typeof value === "string") return value;
  if (value instanceof Error) return String(value) + places(value.stack);
  if (typeof value === "object" && value !== null) {
    try {
      const text = stringify(value, plain);
      if (typeof text === "string") return text;
    } catch {
      return "[object that is no JSON]";
    }
  }
  if (typeof value === "function") return "[function]";
  return String(value);
};

const printer = (level) => (...values) => {
  let line = level;
  for (let i = 0; i < values.length; i++) line += (i ? " " : "") + show(values[i]);
  host.print(line);
};
globalThis.console = freeze({
  __proto__: null,
  log: printer(""), info: printer(""), debug: printer(""), warn: printer("warning: "), error: printer("error: "),
});

const text = (of) => {
  try {
    return String(of);
  } catch {
    return "";
  }
};

// Reading what was thrown runs the script's code if it left a trap there.
const fail = (error) => {
  let name = "", message = "", stack = "", isError = false;
  try {
    isError = error instanceof Error;
    if (isError) {
      name = text(error.name);
      message = text(error.message);
      stack = text(error.stack);
    } else if (typeof error === "object" && error !== null) {
      message = text(stringify(error, plain));
    } else {
      message = text(error);
    }
  } catch {
    message = "what was thrown cannot be read";
  }
  host.failed(name, message, stack, isError);
};

const finish = (value) => {
  if (value === undefined) return host.returned("undefined", "");
  if (typeof value === "string") return host.returned("text", value);
  if (typeof value === "number" || typeof value === "bigint") return host.returned("text", String(value));
  let json;
  try {
    json = stringify(value, plain, 2);
  } catch (error) {
    return host.returned("unfit", error instanceof Error ? text(error.message) : text(error));
  }
  if (typeof json !== "string") return host.returned("unfit", "a " + typeof value + " is no data");
  host.returned("text", json);
};

const start = (script) => {
  globalThis.tools = tools;
  apply(then, script(), [finish, fail]);
};

const settle = (id, ok, text) => {
  const call = pending[id];
  delete pending[id];
  if (ok) return call.resolve(parse(text));
  call.failure.message = text;
  call.failure.name = "ToolError";
  call.reject(call.failure);
};

[start, settle];
