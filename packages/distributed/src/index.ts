export type { Carrier, CollectiveOptions, Hosts, Scope, Traffic } from "./carrier.js";
export type { CompressionState, SavedMatrix } from "./compress/matrix-states.js";
export type { PowerSgdOptions } from "./compress/power-sgd.js";
export { DiLoCo, type DiLoCoOptions, type DiLoCoState } from "./diloco/diloco.js";
export { ExchangeError, type ExchangeFailure } from "./errors.js";
export { agreedMode } from "./gradients/agreed-mode.js";
export {
  GradientExchange,
  type GradientExchangeMode,
  type GradientExchangeOptions,
  type ReduceOptions,
  type ShardedVariables,
} from "./gradients/gradient-exchange.js";
export type { Reducible, ReducibleOptimizer, ReducibleParameters } from "./gradients/reducible.js";
export { type InProcessOptions, inProcess } from "./in-process/in-process.js";
export { StatisticsExchange } from "./statistics/statistics-exchange.js";
export {
  Exchange,
  type ExchangeOptions,
  type MeanOptions,
  type OwnMeanOptions,
} from "./wire/exchange.js";
export type { Wire, WireFormat } from "./wire/wire.js";
