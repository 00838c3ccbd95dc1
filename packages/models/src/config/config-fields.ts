import { ConfigError } from "./config-error.js";

/** No model has more of anything; sums and products of such counts are exact. */
const mostOfAnything = 2 ** 31 - 1;

const longest = 60;

/** A value of a file for a message: in one line, and cut, since it may be as long as the file and as deep. */
function shown(value: unknown): string {
  if (typeof value === "object" && value !== null)
    return Array.isArray(value) ? `a list of ${value.length}` : "an object";
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

/** The fields of a configuration that others made, each checked when it is read. */
export class ConfigFields {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #source: string;

  /** @throws ConfigError where the value is no object */
  constructor(config: unknown, source: string) {
    this.#source = source;
    if (typeof config !== "object" || config === null || Array.isArray(config))
      this.refuse(`is ${shown(config)}: it must be an object, as transformers writes it`);
    this.#fields = config as Readonly<Record<string, unknown>>;
  }

  /** Of an object's own fields; what is null or missing has no value. */
  #value(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? (this.#fields[name] ?? undefined) : undefined;
  }

  /** A whole number of 1 or more. Without a default it must be there. */
  count(name: string, byDefault?: number): number {
    return this.#number(name, `a whole number from 1 to ${mostOfAnything}`, byDefault, (value) =>
      isWhole(value, 1),
    );
  }

  /** A whole number of 0 or more. */
  index(name: string, byDefault: number): number {
    return this.#number(name, `a whole number from 0 to ${mostOfAnything}`, byDefault, (value) =>
      isWhole(value, 0),
    );
  }

  /** A number from 0 to 1. */
  fraction(name: string, byDefault: number): number {
    return this.#number(
      name,
      "a number from 0 to 1",
      byDefault,
      (value) => value >= 0 && value <= 1,
    );
  }

  /** Above 0, and finite. */
  positive(name: string, byDefault: number): number {
    return this.#number(
      name,
      "a number above 0",
      byDefault,
      (value) => value > 0 && Number.isFinite(value),
    );
  }

  oneOf<Name extends string>(name: string, names: readonly Name[], byDefault: Name): Name {
    const value = this.#value(name) ?? byDefault;
    const found = names.find((each) => each === value);
    return found ?? this.refuse(`has ${name} ${shown(value)}: it may be ${names.join(", ")}`);
  }

  /** Refuses values that would make another model than ours. What is missing is as expected. */
  require(expected: Readonly<Record<string, unknown>>): void {
    for (const [name, wanted] of Object.entries(expected)) {
      const value = this.#value(name);
      const isSame = value === wanted || (wanted === "empty" && isEmpty(value));
      if (value !== undefined && !isSame)
        this.refuse(`has ${name} ${shown(value)}: only ${shown(wanted)} is supported`);
    }
  }

  refuse(problem: string): never {
    throw new ConfigError(this.#source, problem);
  }

  #number(
    name: string,
    what: string,
    byDefault: number | undefined,
    isValid: (value: number) => boolean,
  ): number {
    const value = this.#value(name);
    if (value === undefined) return byDefault ?? this.refuse(`has no ${name}: it must be ${what}`);
    if (typeof value !== "number" || !isValid(value))
      this.refuse(`has ${name} ${shown(value)}: it must be ${what}`);
    return value as number;
  }
}

const isWhole = (value: number, least: number): boolean =>
  Number.isSafeInteger(value) && value >= least && value <= mostOfAnything;

const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;
