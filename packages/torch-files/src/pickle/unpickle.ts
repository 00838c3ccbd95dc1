import { TorchFileError, type TorchFileProblem } from "../error.js";
import { op, opcodeName } from "./opcodes.js";
import { PickleGlobal, PickleObject, PickleReference, type PickleValue } from "./values.js";

/** A pickle as data. */
export interface Pickled {
  readonly value: PickleValue;
  /** Where the pickle ends in its bytes. */
  readonly end: number;
  /** All names of Python's in it. */
  readonly globals: readonly PickleGlobal[];
  /** All references to what is kept elsewhere. */
  readonly references: readonly PickleReference[];
}

/** Where a pickle lies. */
export interface PicklePlace {
  /** The file in error messages. */
  readonly source?: string | undefined;
  /** Where the pickle starts in its bytes. Default 0. */
  readonly start?: number;
}

/** The bytes end before the pickle does. With more of them it may be whole. */
export class EndOfPickle extends TorchFileError {
  constructor(source: string | undefined, offset: number) {
    super("truncated", "the pickle ends in the middle: download or copy the file again", {
      source,
      offset,
    });
  }
}

/**
 * Lists, dicts, objects, … of a pickle: a state dict has seven for each tensor. Every one takes up to 200 bytes of memory and may
 * take a single byte of the pickle.
 */
const mostObjects = 2 ** 20;

/**
 * Reads one pickle of protocol 2 to 5 as data. Classes and functions stay names, and calls stay notes of calls: nothing is looked up,
 * imported or executed. Time and memory are linear in the length of the pickle, and nesting takes no stack.
 *
 * @throws EndOfPickle where the bytes end first
 * @throws TorchFileError for a malformed pickle, for opcodes that torch does not write, and for too many objects
 */
export const unpickle = (bytes: Uint8Array, place: PicklePlace = {}): Pickled =>
  new Unpickler(bytes, place).run();

class Unpickler {
  /** What each opcode does. There is none that looks up or runs anything. */
  static readonly #actions: ReadonlyMap<number, (own: Unpickler) => void> = new Map<
    number,
    (own: Unpickler) => void
  >([
    [op.PROTO, (own) => own.#protocol(own.#byte())],
    // The length of what follows, which is read as it comes.
    [op.FRAME, (own) => own.#take(8)],
    [op.NONE, (own) => own.#push(null)],
    [op.NEWTRUE, (own) => own.#push(true)],
    [op.NEWFALSE, (own) => own.#push(false)],
    [op.BININT, (own) => own.#push(own.#view.getInt32(own.#take(4), true))],
    [op.BININT1, (own) => own.#push(own.#byte())],
    [op.BININT2, (own) => own.#push(own.#view.getUint16(own.#take(2), true))],
    [op.LONG1, (own) => own.#push(integerOf(own.#slice(own.#byte())))],
    [op.BINFLOAT, (own) => own.#push(own.#view.getFloat64(own.#take(8)))],
    [op.SHORT_BINUNICODE, (own) => own.#push(own.#text(own.#byte()))],
    [op.BINUNICODE, (own) => own.#push(own.#text(own.#length32()))],
    [op.BINUNICODE8, (own) => own.#push(own.#text(own.#length64()))],
    [op.SHORT_BINSTRING, (own) => own.#push(latin1(own.#slice(own.#byte())))],
    [op.BINSTRING, (own) => own.#push(latin1(own.#slice(own.#length32())))],
    [op.SHORT_BINBYTES, (own) => own.#create(own.#slice(own.#byte()))],
    [op.BINBYTES, (own) => own.#create(own.#slice(own.#length32()))],
    [op.BINBYTES8, (own) => own.#create(own.#slice(own.#length64()))],
    [op.BYTEARRAY8, (own) => own.#create(own.#slice(own.#length64()))],
    [op.EMPTY_TUPLE, (own) => own.#push(emptyTuple)],
    [op.TUPLE1, (own) => own.#create(own.#popLast(1))],
    [op.TUPLE2, (own) => own.#create(own.#popLast(2))],
    [op.TUPLE3, (own) => own.#create(own.#popLast(3))],
    [op.TUPLE, (own) => own.#create(own.#popMarked())],
    [op.EMPTY_LIST, (own) => own.#create([])],
    [op.APPEND, (own) => own.#append([own.#pop()])],
    [op.APPENDS, (own) => own.#append(own.#popMarked())],
    [op.EMPTY_DICT, (own) => own.#create(new Map())],
    [op.SETITEM, (own) => own.#setItems(own.#popLast(2))],
    [op.SETITEMS, (own) => own.#setItems(own.#popMarked())],
    [op.EMPTY_SET, (own) => own.#create(new Set())],
    [op.ADDITEMS, (own) => own.#addToSet(own.#popMarked())],
    [op.FROZENSET, (own) => own.#create(new Set(own.#popMarked()))],
    [op.MARK, (own) => own.#marks.push(own.#stack.length)],
    [op.POP, (own) => own.#popOrUnmark()],
    [op.POP_MARK, (own) => own.#popMarked()],
    [op.DUP, (own) => own.#push(own.#top())],
    [op.BINPUT, (own) => own.#memo.set(own.#byte(), own.#top())],
    [op.LONG_BINPUT, (own) => own.#memo.set(own.#length32(), own.#top())],
    [op.MEMOIZE, (own) => own.#memo.set(own.#memo.size, own.#top())],
    [op.BINGET, (own) => own.#get(own.#byte())],
    [op.LONG_BINGET, (own) => own.#get(own.#length32())],
    [op.GLOBAL, (own) => own.#global(own.#line(), own.#line())],
    [op.STACK_GLOBAL, (own) => own.#global(...own.#popLast(2))],
    [op.REDUCE, (own) => own.#call(own.#popLast(2))],
    [op.NEWOBJ, (own) => own.#call(own.#popLast(2))],
    // The third is arguments by name.
    [op.NEWOBJ_EX, (own) => own.#call(own.#popLast(3))],
    [op.BUILD, (own) => own.#build(own.#pop())],
    [op.BINPERSID, (own) => own.#refer(own.#pop())],
  ]);

  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #source: string | undefined;
  #at: number;
  /** Where the present opcode stands. */
  #opcodeAt = 0;
  #objects = 0;
  readonly #stack: PickleValue[] = [];
  /** Heights of the stack where marks lie. */
  readonly #marks: number[] = [];
  readonly #memo = new Map<number, PickleValue>();
  readonly #globals: PickleGlobal[] = [];
  readonly #references: PickleReference[] = [];

  constructor(bytes: Uint8Array, { source, start = 0 }: PicklePlace) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#source = source;
    this.#at = start;
  }

  run(): Pickled {
    for (;;) {
      this.#opcodeAt = this.#at;
      const code = this.#byte();
      if (code === op.STOP) break;
      const action = Unpickler.#actions.get(code);
      if (action === undefined)
        throw this.#error(
          `opcode ${opcodeName(code)} is not written by torch.save(), and not read here: load the file in Python where you trust it, and save its state_dict() again`,
        );
      action(this);
    }
    const value = this.#pop();
    return {
      ...{ value, end: this.#at },
      globals: this.#globals,
      references: this.#references,
    };
  }

  #protocol(version: number): void {
    if (version > 5)
      throw this.#error(
        `protocol ${version} is not known: save the state_dict() again, which torch does by protocol 2`,
      );
  }

  #push(value: PickleValue): void {
    this.#stack.push(value);
  }

  #create(value: PickleValue): void {
    this.#objects += 1;
    if (this.#objects > mostObjects)
      throw this.#error(`the pickle has more than ${mostObjects} objects`, "too-large");
    this.#stack.push(value);
  }

  #append(items: readonly PickleValue[]): void {
    const list = this.#top();
    // What is appended to an object of another class is of no use here.
    if (list instanceof PickleObject) return;
    if (!Array.isArray(list) || list === emptyTuple)
      throw this.#error("something is appended to what is no list");
    for (const item of items) (list as PickleValue[]).push(item);
  }

  #addToSet(items: readonly PickleValue[]): void {
    const set = this.#top();
    if (!(set instanceof Set)) throw this.#error("something is added to what is no set");
    for (const item of items) set.add(item);
  }

  #setItems(items: readonly PickleValue[]): void {
    if (items.length % 2 !== 0) throw this.#error("a key of a dict has no value");
    const dict = this.#top();
    if (dict instanceof PickleObject && dict.entries === undefined) {
      this.#objects += 1;
      dict.entries = new Map();
    }
    const entries = dict instanceof PickleObject ? dict.entries : dict;
    if (!(entries instanceof Map)) throw this.#error("a key is set in what is no dict");
    for (let i = 0; i < items.length; i += 2)
      entries.set(items[i] as PickleValue, items[i + 1] as PickleValue);
  }

  #build(state: PickleValue): void {
    const object = this.#top();
    if (!(object instanceof PickleObject))
      throw this.#error("a state is given to what is no object");
    object.state = state;
  }

  #global(module?: PickleValue, name?: PickleValue): void {
    if (typeof module !== "string" || typeof name !== "string")
      throw this.#error("the name of a class is no text");
    const named = new PickleGlobal(module, name);
    this.#globals.push(named);
    this.#create(named);
  }

  #call([callee = null, args = null]: readonly PickleValue[]): void {
    this.#create(new PickleObject(callee, args));
  }

  #refer(id: PickleValue): void {
    const reference = new PickleReference(id);
    this.#references.push(reference);
    this.#create(reference);
  }

  #get(index: number): void {
    const value = this.#memo.get(index);
    if (value === undefined) throw this.#error(`the memo has no entry ${index}`);
    this.#stack.push(value as PickleValue);
  }

  #top(): PickleValue {
    if (this.#stack.length <= (this.#marks.at(-1) ?? 0)) throw this.#error("the stack is empty");
    return this.#stack.at(-1) as PickleValue;
  }

  #pop(): PickleValue {
    const value = this.#top();
    this.#stack.pop();
    return value;
  }

  #popOrUnmark(): void {
    if (this.#marks.at(-1) === this.#stack.length) this.#marks.pop();
    else this.#pop();
  }

  #popLast(count: number): PickleValue[] {
    if (this.#stack.length < (this.#marks.at(-1) ?? 0) + count)
      throw this.#error("the stack is empty");
    return this.#stack.splice(this.#stack.length - count, count);
  }

  #popMarked(): PickleValue[] {
    const height = this.#marks.pop();
    if (height === undefined) throw this.#error("there is no mark");
    return this.#stack.splice(height);
  }

  /** The place of the next bytes, which are then behind. */
  #take(count: number): number {
    const at = this.#at;
    if (at + count > this.#bytes.length) throw new EndOfPickle(this.#source, this.#opcodeAt);
    this.#at = at + count;
    return at;
  }

  #byte(): number {
    return this.#bytes[this.#take(1)] as number;
  }

  #length32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  #length64(): number {
    const length = Number(this.#view.getBigUint64(this.#take(8), true));
    if (!Number.isSafeInteger(length)) throw this.#error(`a length of ${length} bytes`);
    return length;
  }

  #slice(length: number): Uint8Array {
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  #text(length: number): string {
    try {
      return utf8.decode(this.#slice(length));
    } catch (cause) {
      if (!(cause instanceof TypeError)) throw cause;
      throw this.#error("a text is not UTF-8");
    }
  }

  #line(): string {
    const end = this.#bytes.indexOf(0x0a, this.#at);
    if (end < 0) throw new EndOfPickle(this.#source, this.#opcodeAt);
    const line = this.#text(end - this.#at);
    this.#at = end + 1;
    return line;
  }

  #error(fact: string, problem: TorchFileProblem = "pickle"): TorchFileError {
    return new TorchFileError(problem, fact, { source: this.#source, offset: this.#opcodeAt });
  }
}

const emptyTuple: readonly PickleValue[] = Object.freeze([]);
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Texts of Python 2. */
function latin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

/** Two's complement, the lowest byte first; a number where that is exact. */
function integerOf(bytes: Uint8Array): number | bigint {
  if (bytes.length === 0) return 0;
  const digits = [...bytes].reverse().map((byte) => byte.toString(16).padStart(2, "0"));
  const value = BigInt.asIntN(8 * bytes.length, BigInt(`0x${digits.join("")}`));
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
