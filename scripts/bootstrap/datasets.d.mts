/**
 * The folder of a package of data, which is installed when it is asked for.
 * @param datasets the folder with the package.json that names it, with a slash at its end
 * @throws a DataError where it cannot be installed
 */
export declare const datasetPackage: (datasets: URL, name: string) => Promise<string>;
