// Loads a trace into Perfetto's trace processor and answers SQL: node perfetto_query.mjs WEB_DIST TRACE SQL...
// Prints a JSON list with the rows of each statement. The trace processor is the WebAssembly that the viewer uses; its
// wire format is protos/perfetto/trace_processor/trace_processor.proto.

import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorMethod
const PIECE = 1 << 24;
const [folder, trace, ...statements] = process.argv.slice(2);

class Port {
  constructor() {
    this.held = Buffer.alloc(0);
    this.replies = [];
  }
  postMessage(bytes) {
    this.held = Buffer.concat([this.held, bytes]);
    for (const [, message] of fields(this.held)) this.replies.push(decode(message));
    this.held = Buffer.alloc(0);
  }
}

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

function readVarint(buffer, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = buffer[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
}

function* fields(buffer) {
  for (let at = 0; at < buffer.length; ) {
    let tag, value;
    [tag, at] = readVarint(buffer, at);
    const kind = Number(tag & 7n);
    if (kind === 0) [value, at] = readVarint(buffer, at);
    else {
      let size = 8n;
      if (kind === 2) [size, at] = readVarint(buffer, at);
      value = buffer.subarray(at, at + Number(size));
      at += Number(size);
    }
    yield [Number(tag >> 3n), value];
  }
}

function packed(buffer) {
  const found = [];
  for (let at = 0, value; at < buffer.length; found.push(value)) [value, at] = readVarint(buffer, at);
  return found;
}

function decode(message) {
  const reply = { error: "", columns: [], rows: [] };
  for (const [field, value] of fields(message)) {
    if (field === 5) reply.error = value.toString();
    if (field === 201 || field === 211) for (const [inner, text] of fields(value)) if (Buffer.isBuffer(text)) reply.error = text.toString();
    if (field === 203) decodeResult(value, reply);
  }
  return reply;
}

function decodeResult(result, reply) {
  for (const [field, value] of fields(result)) {
    if (field === 1) reply.columns.push(value.toString());
    if (field === 2) reply.error = value.toString();
    if (field === 3) reply.rows.push(...cells(value));
  }
}

function cells(batch) {
  let kinds = [], whole = [], real = [], texts = [];
  for (const [field, value] of fields(batch)) {
    if (field === 1) kinds = packed(value).map(Number);
    if (field === 2) whole = packed(value).map((one) => Number(BigInt.asIntN(64, one)));
    if (field === 3) for (let at = 0; at < value.length; at += 8) real.push(value.readDoubleLE(at));
    if (field === 5) texts = value.toString().split("\0");
  }
  return kinds.map((kind) => (kind === 2 ? whole.shift() : kind === 3 ? real.shift() : kind === 4 ? texts.shift() : null));
}

async function load() {
  const read = (name) => fs.readFileSync(path.join(folder, path.basename(name)));
  const sandbox = { // what a worker of a browser has
    ArrayBuffer, BigInt64Array, BigUint64Array, DataView, Float32Array, Float64Array, Int16Array, Int32Array, Int8Array,
    TextDecoder, TypeError, Uint16Array, Uint32Array, Uint8Array, URL, WebAssembly, clearInterval, crypto, performance, setInterval,
    WorkerGlobalScope: class {},
    XMLHttpRequest: class {
      open(_method, name) { this.response = new Uint8Array(read(name)); }
      send() {}
    },
    console: { error: console.error, log() {}, warn() {} },
    location: { href: "http://localhost/engine_bundle.js" },
  };
  sandbox.self = sandbox;
  vm.runInContext(read("engine_bundle.js").toString(), vm.createContext(sandbox));
  const port = new Port();
  sandbox.onmessage({ data: port });
  await new Promise(setImmediate);
  return port;
}

function call(port, method, argument = Buffer.alloc(0)) {
  port.replies = [];
  const message = Buffer.concat([number(1, ++call.sequence), number(2, method), argument]);
  port.onmessage({ data: new Uint8Array(bytes(1, message)) });
  const error = port.replies.map((reply) => reply.error).find((text) => text);
  if (error) throw new Error(error);
  return port.replies;
}
call.sequence = -1;

function rows(replies) {
  const columns = replies.find((reply) => reply.columns.length)?.columns ?? [];
  const flat = replies.flatMap((reply) => reply.rows);
  return Array.from({ length: columns.length ? flat.length / columns.length : 0 }, (_, row) =>
    Object.fromEntries(columns.map((name, place) => [name, flat[row * columns.length + place]])));
}

const port = await load();
const content = fs.readFileSync(trace);
for (let at = 0; at < content.length; at += PIECE) call(port, APPEND, bytes(101, content.subarray(at, at + PIECE)));
call(port, FINALIZE);
const answers = statements.map((sql) => rows(call(port, QUERY, bytes(103, bytes(1, Buffer.from(sql))))));
process.stdout.write(JSON.stringify(answers), () => process.exit(0));
