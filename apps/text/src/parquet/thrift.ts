/** Wire types of Thrift's compact protocol that Parquet uses. */
const wire = {
  ...{ stop: 0, true: 1, false: 2, byte: 3, i16: 4, i32: 5, i64: 6 },
  ...{ double: 7, binary: 8, list: 9, struct: 12 },
} as const;

/** Parquet's own structures are half as deep. */
const deepest = 16;

/**
 * Where a struct of Thrift's compact protocol ends. The library that reads such structs takes numbers of any length, lists of any announced
 * length and structs of any depth; what this function has followed to its end is none of them.
 * @throws RangeError for what no writer of Parquet writes
 */
export const structEnd = (bytes: Uint8Array, start: number): number =>
  new Walk(bytes, start).struct(0);

class Walk {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes;
    this.#at = start;
  }

  struct(depth: number): number {
    if (depth > deepest) throw new RangeError("its structures are too deep");
    for (;;) {
      const header = this.#byte();
      const type = header & 15;
      if (type === wire.stop) return this.#at;
      // A field's number is counted on from the one before, or written.
      if (header >> 4 === 0) this.#number(3);
      this.#value(type, depth);
    }
  }

  #value(type: number, depth: number): void {
    if (type === wire.true || type === wire.false) return;
    if (type === wire.byte) this.#skip(1);
    else if (type === wire.i16 || type === wire.i32) this.#number(5);
    else if (type === wire.i64) this.#number(10);
    else if (type === wire.double) this.#skip(8);
    else if (type === wire.binary) this.#skip(this.#number(5));
    else if (type === wire.list) this.#list(depth + 1);
    else if (type === wire.struct) this.struct(depth + 1);
    else throw new RangeError(`it has a value of the kind ${type}`);
  }

  #list(depth: number): void {
    if (depth > deepest) throw new RangeError("its structures are too deep");
    const header = this.#byte();
    const length = header >> 4 === 15 ? this.#number(5) : header >> 4;
    // Each element has a byte or more.
    if (length > this.#bytes.length - this.#at)
      throw new RangeError(`it has a list of ${length} elements in fewer bytes`);
    const type = header & 15;
    for (let i = 0; i < length; i++)
      if (type === wire.true || type === wire.false) this.#skip(1);
      else this.#value(type, depth);
  }

  #byte(): number {
    this.#skip(1);
    return this.#bytes[this.#at - 1] as number;
  }

  #skip(length: number): void {
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new RangeError("it ends in the middle of a structure");
  }

  /** A number of at most so many bytes, each of which has seven bits. */
  #number(most: number): number {
    let value = 0;
    for (let i = 0; i < most; i++) {
      const byte = this.#byte();
      value += (byte & 127) * 2 ** (7 * i);
      if (byte < 128) return value;
    }
    throw new RangeError("it has a number that is too long");
  }
}
