import { type Operator, type Strip, stripLength } from "./operators.js";
import type { Origin, Part } from "./term.js";
import { operandsOf, partsOf, variablesOf } from "./walk.js";

/** One operation on strips, by their places. */
interface Step {
  readonly operator: Operator;
  readonly out: number;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  /** Whether the result is rounded to float32 for later steps. */
  readonly isKept: boolean;
}

/**
 * The JavaScript of a formula: evaluates it for up to {@link stripLength} elements at a time, operation by operation, each in a short
 * loop. Intermediate numbers are float64.
 */
export class StripEvaluator {
  /** The names of the variables. */
  readonly variables: ReadonlySet<string>;
  readonly #strips: Strip[] = [];
  readonly #places = new Map<Part, number>();
  readonly #variablePlaces = new Map<string, number>();
  readonly #ofLaunch: Step[] = [];
  readonly #ofElements: Step[] = [];
  readonly #results: readonly number[];

  /** @param kept parts that are stored as float32 before others use them. */
  constructor(roots: readonly Part[], kept: ReadonlySet<Part> = new Set()) {
    this.variables = variablesOf(roots);
    const parts = [...partsOf(roots)];
    const readers = new Map<Part, number>();
    for (const part of [...parts.flatMap(operandsOf), ...roots])
      readers.set(part, (readers.get(part) ?? 0) + 1);
    const free: number[] = [];
    const take = (): number => free.pop() ?? this.#strips.push(new Float64Array(stripLength)) - 1;
    for (const part of parts) {
      const { origin, isUniform } = part;
      if (origin.kind !== "operation") {
        this.#places.set(part, this.#placeOf(origin));
        continue;
      }
      const [a = 0, b = 0, c = 0] = origin.operands.map((o) => this.#places.get(o) as number);
      // Strips of uniform values stay; a strip without later readers is reused.
      for (const operand of isUniform ? [] : origin.operands) {
        const left = (readers.get(operand) as number) - 1;
        readers.set(operand, left);
        if (left === 0 && operand.origin.kind === "operation" && !operand.isUniform)
          free.push(this.#places.get(operand) as number);
      }
      const out = isUniform ? this.#strips.push(new Float64Array(stripLength)) - 1 : take();
      this.#places.set(part, out);
      const steps = isUniform ? this.#ofLaunch : this.#ofElements;
      steps.push({ operator: origin.operator, out, a, b, c, isKept: kept.has(part) });
    }
    this.#results = roots.map((root) => this.#places.get(root) as number);
  }

  #placeOf(origin: Exclude<Origin, { readonly kind: "operation" }>): number {
    const place = this.#strips.length;
    if (origin.kind === "constant") {
      this.#strips.push(new Float64Array(stripLength).fill(origin.value));
      return place;
    }
    const known = this.#variablePlaces.get(origin.name);
    if (known !== undefined) return known;
    this.#strips.push(new Float64Array(stripLength));
    this.#variablePlaces.set(origin.name, place);
    return place;
  }

  /** Sets the strip from which a variable of the elements is read. Variables that no part uses are ignored. */
  read(name: string, strip: Strip): void {
    const place = this.#variablePlaces.get(name);
    if (place !== undefined) this.#strips[place] = strip;
  }

  /** The strip of a variable of the elements, for the caller to fill. */
  stripOf(name: string): Strip {
    return this.#strips[this.#variablePlaces.get(name) as number] as Strip;
  }

  /** Sets the variables that are one number for the whole launch, and computes the uniform parts, for up to `count` elements. */
  begin(values: Readonly<Record<string, number>>, count: number = stripLength): void {
    for (const [name, place] of this.#variablePlaces) {
      const value = values[name];
      if (value !== undefined) (this.#strips[place] as Strip).fill(value, 0, count);
    }
    this.#run(this.#ofLaunch, count, false);
  }

  /** Computes the results for `count` elements. `keeps`: whether kept parts are rounded to float32. */
  run(count: number, keeps = false): void {
    this.#run(this.#ofElements, count, keeps);
  }

  /** A result, valid until the next run. */
  result(root: number): Strip {
    return this.#strips[this.#results[root] as number] as Strip;
  }

  #run(steps: readonly Step[], count: number, keeps: boolean): void {
    const strips = this.#strips;
    for (const { operator, out, a, b, c, isKept } of steps) {
      const strip = strips[out] as Strip;
      operator.run(strip, count, strips[a] as Strip, strips[b] as Strip, strips[c] as Strip);
      if (keeps && isKept) roundToSingle(strip, count);
    }
  }
}

function roundToSingle(strip: Strip, count: number): void {
  for (let i = 0; i < count; i++) strip[i] = Math.fround(strip[i] as number);
}
