/** The kind of each option. */
export type Kinds<Options> = Readonly<Record<keyof Options, "function" | "any">>;

/** Throws a TypeError for unknown options, which would have no effect, and for what is no function. */
export function requireKinds(
  what: string,
  options: object,
  kinds: Readonly<Record<string, string>>,
): void {
  for (const [name, value] of Object.entries(options)) {
    const kind = kinds[name];
    if (!kind)
      throw new TypeError(
        `${what} has no option ${name}: it has ${Object.keys(kinds).sort().join(", ")}`,
      );
    if (kind === "function" && value !== undefined && typeof value !== "function")
      throw new TypeError(`${name} is ${said(value)}: it must be a function`);
  }
}

/** A value as errors name it. */
export const said = (value: unknown): string =>
  typeof value === "string" ? JSON.stringify(value) : String(value);
