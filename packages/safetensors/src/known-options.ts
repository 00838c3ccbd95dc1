/**
 * @throws TypeError for options that are no object, and for unknown ones: a misspelt option would keep its default
 */
export function requireKnown(call: string, options: object, known: readonly string[]): void {
  if (typeof options !== "object" || options === null)
    throw new TypeError(`${call}: the options are ${String(options)}; pass an object`);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`${call}: there is no option ${unknown}; pass any of ${known.join(", ")}`);
}
