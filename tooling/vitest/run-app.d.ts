/** What a program left behind. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly seconds: number;
}

export interface RunAppOptions {
  /** For its standard input, which is empty otherwise. */
  readonly input?: string;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Called with all of stderr so far whenever there is more of it. */
  readonly onStderr?: (stderr: string, kill: (signal: NodeJS.Signals) => void) => void;
}

/** `npm start -w APP -- …args`, without npm. The first call of a process bundles the app, others run that bundle. */
export declare const runApp: (
  app: string,
  args: readonly string[],
  options?: RunAppOptions,
) => Promise<Ended>;

/** `npm start -- …args`, without npm and its set-up. */
export declare const runStart: (args: readonly string[], options?: RunAppOptions) => Promise<Ended>;

/** The bundle that one of the others has left behind: as they run it, without bundling again. */
export declare const runBundle: (
  app: string,
  args: readonly string[],
  options?: RunAppOptions,
) => Promise<Ended>;
