import type { FormatName } from "@halfstep/formats";

/** The dtypes that a region can lower ops to. */
export type AutocastDType = Extract<FormatName, "float16" | "bfloat16">;

/** The dtypes that autocast casts from and to. All others (float64, integers, booleans) are never touched. */
export type CastDType = "float32" | AutocastDType;

/**
 * The dtype in which an op runs inside an enabled region. Outside of enabled regions, policies cast nothing.
 *
 * | policy | torch's name | floating inputs become |
 * |---|---|---|
 * | `"lowerPrecision"` | `lower_precision_fp` | the region's dtype: matrix products and convolutions |
 * | `"float32"` | `fp32` | float32: ops that need range or digits, such as exp, norms and losses |
 * | `"float32Output"` | `fp32_set_opt_dtype` | float32, unless the caller passed a `dtype` of its own: then the op obeys it and takes no part |
 * | `"promote"` | `promote` | the widest dtype among them |
 * | `"none"` | unlisted | what they are |
 * | `{ banned }` | banned | an error that ends with the remedy given |
 */
export type CastPolicy =
  | "lowerPrecision"
  | "float32"
  | "float32Output"
  | "promote"
  | "none"
  | BannedPolicy;

/** The policy of an op that must not run under autocast. */
export interface BannedPolicy {
  /** A full sentence: why the op is refused and what to use in its place. */
  readonly banned: string;
}

/** Policies by op name. */
export type CastPolicies = Readonly<Record<string, CastPolicy>>;
