import { DTypeError } from "./errors.js";
import type { CastDType, CastPolicy } from "./policy.js";
import { type AutocastRegion, noPolicies } from "./region.js";

/**
 * The dtype to which every eligible input of an op is cast, or `undefined` where none is cast. Eligible are float32, float16
 * and bfloat16; inputs of other dtypes never change. Inputs that already have the dtype need no cast. The function is pure.
 *
 * Semantics are those of torch's `cached_cast` (see autocast_mode.h of ATen) except for `"promote"`, which uses only the
 * dtypes of the inputs. The rule of torch also includes the region's dtype, and therefore refuses bfloat16 inputs in a
 * float16 region.
 *
 * @param policy The op's policy after overrides, from `policyOf`.
 * @param dtypes The dtype of each tensor input, in any order.
 * @param region The region of the call, from `currentRegion()`.
 * @throws DTypeError in an enabled region, if the op is banned, or if `"promote"` meets float16 and bfloat16 and no float32,
 *   which torch refuses too: neither can represent the other.
 */
export function resolveCast(
  policy: CastPolicy,
  dtypes: readonly string[],
  region: AutocastRegion | undefined,
): CastDType | undefined {
  if (!region?.enabled) return undefined;
  if (typeof policy === "object") throw new DTypeError(policy.banned);
  const eligible = dtypes.filter(isCastDType);
  if (eligible.length === 0) return undefined;
  switch (policy) {
    case "lowerPrecision":
      return region.dtype;
    case "float32":
    case "float32Output":
      return "float32";
    case "promote":
      return widest(eligible);
    case "none":
      return undefined;
    default:
      throw new TypeError(
        `unknown cast policy "${String(policy)}": use lowerPrecision, float32, float32Output, promote, none or { banned }`,
      );
  }
}

/**
 * The policy that holds for an op: the innermost override by its name in a region, else the innermost of `"*"`, else its own.
 *
 * @param op its name and the policy it was defined with; an op definition of `@halfstep/tensor` will do.
 */
export function policyOf(
  op: { readonly name: string; readonly castPolicy: CastPolicy },
  region: AutocastRegion | undefined,
): CastPolicy {
  const policies = region?.policies;
  if (policies === undefined || policies === noPolicies) return op.castPolicy;
  if (Object.hasOwn(policies, op.name)) return policies[op.name] as CastPolicy;
  return Object.hasOwn(policies, "*") ? (policies["*"] as CastPolicy) : op.castPolicy;
}

const isCastDType = (dtype: string): dtype is CastDType =>
  dtype === "float32" || dtype === "float16" || dtype === "bfloat16";

function widest(dtypes: readonly CastDType[]): CastDType {
  if (dtypes.includes("float32")) return "float32";
  const [first] = dtypes;
  if (dtypes.some((dtype) => dtype !== first)) {
    throw new DTypeError(
      "float16 and bfloat16 do not promote to each other: cast one of the inputs first",
    );
  }
  return first as CastDType;
}
