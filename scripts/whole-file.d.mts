/** Writes a file that appears whole or not at all: beside its place, flushed, then renamed. @throws the system's error */
export declare const writeWhole: (path: string, content: string | Uint8Array) => void;
