import {
  allDTypes,
  type DType,
  floatingDTypes,
  type IntegerDType,
  isInteger,
} from "@halfstep/formats/dtypes";
import { shown } from "./attributes.js";

/**
 * The kind of a value between its load and its store: a float, computed in float32, or a 32-bit integer, which never becomes a float
 * implicitly.
 */
export type Domain = "float" | IntegerDType;

/** The domain of a loaded element of this storage. Throws a TypeError for an unknown one. */
export const domainOf = (dtype: DType): Domain => domains.get(dtype) ?? refuseDType(dtype);

const domains: ReadonlyMap<DType, Domain> = new Map(
  allDTypes.map((dtype) => [dtype, isInteger(dtype) ? dtype : "float"]),
);

function refuseDType(dtype: unknown): never {
  throw new TypeError(
    `there is no dtype ${shown(dtype)}: storage is one of ${allDTypes.join(", ")}`,
  );
}

/** The storage of values of a domain. */
export const dtypesOf = (domain: Domain): readonly DType[] =>
  domain === "float" ? floatingDTypes : [domain];

/** WGSL types of one element, and of two or four. */
const types = {
  float: { scalar: "f32", pair: "vec2f", quad: "vec4f" },
  int32: { scalar: "i32", pair: "vec2i", quad: "vec4i" },
  uint32: { scalar: "u32", pair: "vec2u", quad: "vec4u" },
} as const;

export const scalarType = (domain: Domain): "f32" | "i32" | "u32" => types[domain].scalar;
export const quadType = (domain: Domain): "vec4f" | "vec4i" | "vec4u" => types[domain].quad;
export const pairType = (domain: Domain): "vec2f" | "vec2i" | "vec2u" => types[domain].pair;
