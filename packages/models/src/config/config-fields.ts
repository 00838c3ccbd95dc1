import { ConfigError } from "./config-error.js";

/** Upper limit of all counts; sums and products of such counts are exact. */
const mostOfAnything = 2 ** 31 - 1;

const longest = 60;

/** A value of a file for a message: in one line, and cut, since it may be as long as the file and as deep. */
function shown(value: unknown): string {
  if (typeof value === "object" && value !== null)
    return Array.isArray(value) ? `a list of ${value.length}` : "an object";
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

/**
 * The fields of an untrusted configuration or file: each is checked when it is read.
 *
 * @example
 * const fields = new ConfigFields(JSON.parse(text), "config.json");
 * const options = { width: fields.count("width", 64), bilinear: fields.truth("bilinear", false) };
 */
export class ConfigFields {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #source: string;

  /** @throws ConfigError where the value is no object */
  constructor(config: unknown, source: string) {
    this.#source = source;
    if (typeof config !== "object" || config === null || Array.isArray(config))
      this.refuse(`is ${shown(config)}: it must be an object`);
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

  /** One of some names. Without a default it must be there. */
  oneOf<Name extends string>(name: string, names: readonly Name[], byDefault?: Name): Name {
    const value = this.#value(name) ?? byDefault;
    const found = names.find((each) => each === value);
    return found ?? this.refuse(`has ${name} ${shown(value)}: it may be ${names.join(", ")}`);
  }

  /** True or false. Without a default it must be there. */
  truth(name: string, byDefault?: boolean): boolean {
    const value = this.#value(name) ?? byDefault;
    return typeof value === "boolean"
      ? value
      : this.refuse(`has ${name} ${shown(value)}: it may be true or false`);
  }

  /** A text, which must be there. */
  text(name: string): string {
    const value = this.#value(name);
    return typeof value === "string"
      ? value
      : this.refuse(`has ${name} ${shown(value)}: it must be a text`);
  }

  /** A list of texts, which must be there. */
  texts(name: string): readonly string[] {
    return this.list(name, "texts", (each): each is string => typeof each === "string");
  }

  /** A list of finite numbers, which must be there. */
  numbers(name: string): readonly number[] {
    return this.list(name, "numbers", (each): each is number => Number.isFinite(each));
  }

  /** A list of what else, which must be there. */
  list<Item>(
    name: string,
    what: string,
    isItem: (value: unknown) => value is Item,
  ): readonly Item[] {
    const value = this.#value(name);
    return Array.isArray(value) && value.every(isItem)
      ? value
      : this.refuse(`has ${name} ${shown(value)}: it must be a list of ${what}`);
  }

  /** The fields of an object, which must be there. */
  fields(name: string): ConfigFields {
    const value = this.#value(name);
    if (typeof value !== "object" || value === null || Array.isArray(value))
      this.refuse(`has ${name} ${shown(value)}: it must be an object`);
    return new ConfigFields(value, this.#source);
  }

  /** Whether a field has a value: null is none. */
  has(name: string): boolean {
    return this.#value(name) !== undefined;
  }

  /** Refuses values that differ from the expected ones. Missing values pass. */
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
