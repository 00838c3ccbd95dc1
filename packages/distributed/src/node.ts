export type { FamilyName } from "./mpi/families.js";
export { type InitOptions, init } from "./mpi/init.js";
export { type LaunchedRank, launchedRank } from "./mpi/launcher.js";
export { MpiCarrier } from "./mpi/mpi-carrier.js";
export { SetupError, type SetupProblem } from "./mpi/setup-error.js";
