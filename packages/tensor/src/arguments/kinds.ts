import { allDTypes } from "@halfstep/formats/dtypes";
import { isOptions } from "./is-options.js";
import { isTensor } from "./is-tensor.js";

/** The kind of values that a parameter accepts. */
export interface Kind {
  /** The kind in errors: "a tensor". */
  readonly what: string;
  accepts(value: unknown): boolean;
  /** Whether the argument may be left out. */
  readonly isOptional?: true;
  /** Of options: the kind of each member. */
  readonly members?: ParameterKinds;
  /** Whether all arguments from here on are of this kind. */
  readonly isRest?: true;
}

/** The parameters of a function in their order, by name. */
export type ParameterKinds = Readonly<Record<string, Kind>>;

const isInteger = (value: unknown): boolean => Number.isInteger(value);
const listOf =
  (accepts: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.every(accepts);

/** A tensor. */
export const tensor: Kind = { what: "a tensor", accepts: isTensor };
/** A list of tensors. */
export const tensors: Kind = { what: "a list of tensors", accepts: listOf(isTensor) };
/** A number; NaN and infinities, too. */
export const number: Kind = { what: "a number", accepts: (value) => typeof value === "number" };
/** A number that is not negative. */
export const nonNegative: Kind = {
  what: "a number from 0 on",
  accepts: (value) => typeof value === "number" && value >= 0,
};
/** A number above 0. */
export const positive: Kind = {
  what: "a number above 0",
  accepts: (value) => typeof value === "number" && value > 0,
};
/** A whole number. */
export const integer: Kind = { what: "an integer", accepts: isInteger };
/** A list of whole numbers. */
export const integers: Kind = { what: "a list of integers", accepts: listOf(isInteger) };
/** true or false. */
export const flag: Kind = { what: "true or false", accepts: (value) => typeof value === "boolean" };
/** A string. */
export const text: Kind = { what: "a string", accepts: (value) => typeof value === "string" };
/** A dtype of tensors. */
export const dtype: Kind = {
  what: `a dtype (${allDTypes.join(", ")})`,
  accepts: (value) => (allDTypes as readonly unknown[]).includes(value),
};
/** An object of a class of the library, recognised by its members. */
export const object = (what: string, ...members: readonly string[]): Kind => ({
  what,
  accepts: (value) =>
    typeof value === "object" && value !== null && members.every((member) => member in value),
});

/** One of several kinds. */
export const either = (...kinds: readonly Kind[]): Kind => ({
  what: kinds.map(({ what }) => what).join(" or "),
  accepts: (value) => kinds.some((kind) => kind.accepts(value)),
});

/** One of these values. */
export const oneOf = (...values: readonly (string | number)[]): Kind => ({
  what: values.map((value) => JSON.stringify(value)).join(" or "),
  accepts: (value) => values.includes(value as string),
});

/** One integer for both sides, or one for each. */
export const pair: Kind = either(integer, {
  what: "a pair of them",
  accepts: (value) => Array.isArray(value) && value.length === 2 && value.every(isInteger),
});
/** One number for both sides, or one for each. The function checks their range. */
export const sizes: Kind = either(number, {
  what: "a pair of them",
  accepts: (value) => Array.isArray(value) && value.length === 2,
});
/** [before, behind] of each dimension. */
export const pairs: Kind = {
  what: "a list of pairs [before, behind]",
  accepts: listOf((value) => Array.isArray(value) && value.length === 2 && value.every(isInteger)),
};
/** A list whose elements the function checks itself. */
export const list: Kind = { what: "a list", accepts: Array.isArray };
/** A dimension, or a list of them; negative ones count from the end. */
export const axes: Kind = either(integer, integers);

/** The same kind, of an argument that may be left out. */
export const optional = (kind: Kind): Kind => ({ ...kind, isOptional: true });
/** The last parameter: any number of further arguments of a kind. */
export const rest = (kind: Kind): Kind => ({ ...kind, isRest: true });

/** An object with members of these names and no others; members that are not optional are required. */
export function options(members: ParameterKinds): Kind {
  const required = Object.keys(members).filter((name) => !members[name]?.isOptional);
  return {
    what: `options { ${Object.keys(members).join(", ")} }`,
    members,
    accepts(value) {
      if (!isOptions(value)) return false;
      for (const name in value) {
        const member = members[name];
        const given = value[name];
        if (!member || !(given === undefined || member.accepts(given))) return false;
      }
      for (const name of required) if (value[name] === undefined) return false;
      return true;
    },
  };
}

/** Options that may be left out, each of them and all together. */
export const optionals = (members: ParameterKinds): Kind =>
  optional(
    options(
      Object.fromEntries(Object.entries(members).map(([name, kind]) => [name, optional(kind)])),
    ),
  );

/** The reduction of losses: "mean", "sum" or "none". */
export const reduction: Kind = oneOf("mean", "sum", "none");
/** A runtime. */
export const runtime: Kind = object("a runtime", "recorder", "tensor");
/** A `Generator` of random numbers. */
export const generator: Kind = object("a Generator", "take", "offset");
