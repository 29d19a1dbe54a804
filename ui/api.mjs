// Write src/api/schema.d.ts from openapi.json, with the document's digest on the first line.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const path = new URL("openapi.json", import.meta.url);
const digest = createHash("sha256").update(readFileSync(path)).digest("hex");
const types = astToString(await openapiTS(path, { alphabetize: true, emptyObjectsUnknown: true }));
const head = `// openapi.json sha256 ${digest}\n// Made by \`npm run api\`; do not edit.\n`;
writeFileSync(new URL("src/api/schema.d.ts", import.meta.url), head + types);
