export { DTypeError } from "./errors.js";
export {
  type AutocastDType,
  type BannedPolicy,
  type CastDType,
  type CastPolicies,
  type CastPolicy,
  policyOf,
  resolveCast,
} from "./policy.js";
export {
  type AutocastOptions,
  type AutocastRegion,
  autocast,
  currentRegion,
  type DisabledRegion,
  type EnabledRegion,
  type Synchronous,
  withoutAutocast,
} from "./region.js";
export { torchCastPolicies } from "./torch.js";
