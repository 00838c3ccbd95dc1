/** An argument for a message about it, on one line. */
export function described(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80));
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return "an array";
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return /^[AEIO]/.test(kind) ? `an ${kind}` : `a ${kind}`;
}

/** Refuses what is no whole number in these limits, for example the string "2" of a command line. */
export function requireWhole(name: string, value: number, least: number, most: number): void {
  if (!Number.isInteger(value) || value < least || value > most)
    throw new RangeError(
      `${name} is ${described(value)}: it must be a whole number ${most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`}`,
    );
}

/** Refuses what is no object of options, and unknown ones: a misspelt option would silently keep its default. */
export function requireOptions(call: string, options: object, known: readonly string[]): void {
  if (typeof options !== "object" || options === null)
    throw new TypeError(
      `${call}: the options are ${described(options)}: pass an object with ${known.join(", ")}`,
    );
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new RangeError(
      `${call}: there is no option ${described(unknown)}; pass any of ${known.join(", ")}`,
    );
}

/** Refuses what has no elements by number. A text has, but none that are meant. */
export function requireList(
  call: string,
  name: string,
  value: { readonly length: number },
  pass: string,
): void {
  const { length } = typeof value === "object" && value !== null ? value : {};
  if (!Number.isSafeInteger(length))
    throw new TypeError(`${call}: ${name} is ${described(value)}: pass ${pass}`);
}

/** Bytes of a file, however they are held. */
export function bytesOf(call: string, bytes: ArrayBufferLike | Uint8Array): Uint8Array {
  // The tag, unlike instanceof, knows arrays of another realm and Node's Buffer.
  const kind = typeof bytes === "object" && bytes !== null ? bytes[Symbol.toStringTag] : undefined;
  if (kind === "Uint8Array") return bytes as Uint8Array;
  if (kind === "ArrayBuffer" || kind === "SharedArrayBuffer")
    return new Uint8Array(bytes as ArrayBufferLike);
  throw new TypeError(
    `${call}: bytes is ${described(bytes)}: pass a Uint8Array or an ArrayBuffer with the file's content`,
  );
}

/** Refuses what is no text. Bytes have to be decoded first, because only their owner knows the encoding. */
export function requireText(call: string, text: string): void {
  if (typeof text === "string") return;
  const isBytes =
    ArrayBuffer.isView(text) || /ArrayBuffer\]$/.test(Object.prototype.toString.call(text));
  throw new TypeError(
    `${call}: text is ${described(text)}: pass ${isBytes ? "decodeText(bytes)" : "a string"}`,
  );
}
