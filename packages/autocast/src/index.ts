export { DTypeError } from "./errors.js";
export type {
  AutocastDType,
  BannedPolicy,
  CastDType,
  CastPolicies,
  CastPolicy,
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
export { policyOf, resolveCast } from "./resolve.js";
export { torchCastPolicies } from "./torch.js";
