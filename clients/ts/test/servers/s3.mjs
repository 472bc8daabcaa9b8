// A server of S3: s3rver, which stores objects, behind AWS's own implementation of signatures, which s3rver does not check. `read` allows public reading.
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sha256 } from "@aws-crypto/sha256-js";
import { SignatureV4 } from "@smithy/signature-v4";
import S3rver from "s3rver";

export const credentials = { accessKeyId: "S3RVER", secretAccessKey: "a secret" };

const dateOf = (text) => new Date(text.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, "$1-$2-$3T$4:$5:$6Z"));

/** The defect of a request's signature, if any. */
async function wrong({ method, url, headers }, body, region) {
  const signer = new SignatureV4({ service: "s3", region, credentials, sha256: Sha256, uriEscapePath: false, applyChecksum: true });
  const { pathname, searchParams } = new URL(url, "http://s3");
  const query = Object.fromEntries(searchParams);
  const request = { method, protocol: "http:", hostname: headers.host, path: pathname };
  const given = query["X-Amz-Signature"];
  if (given) {
    const signingDate = dateOf(query["X-Amz-Date"]);
    const expiresIn = Number(query["X-Amz-Expires"]);
    if (Date.now() > signingDate.getTime() + 1_000 * expiresIn) return "expired";
    if (query["X-Amz-SignedHeaders"] !== "host") return "headers";
    // Without the fields that the signer adds itself.
    const own = Object.fromEntries(Object.entries(query).filter(([name]) => !/^X-Amz-(Signature|Algorithm|Credential|Date|Expires|SignedHeaders)$/.test(name)));
    const signed = await signer.presign({ ...request, headers: { host: headers.host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD" }, query: own }, { signingDate, expiresIn, unhoistableHeaders: new Set(["x-amz-content-sha256"]), unsignableHeaders: new Set(["x-amz-content-sha256"]) });
    return signed.query["X-Amz-Signature"] === given ? undefined : "signature";
  }
  const [, names, signature] = /SignedHeaders=([^,]*),\s*Signature=(\w+)/.exec(headers.authorization ?? "") ?? [];
  if (!names) return "no signature";
  const hash = headers["x-amz-content-sha256"];
  if (hash !== "UNSIGNED-PAYLOAD" && hash !== createHash("sha256").update(body).digest("hex")) return "payload";
  const own = Object.fromEntries(names.split(";").map((name) => [name, headers[name]]));
  const signed = await signer.sign({ ...request, headers: own, query }, { signingDate: dateOf(headers["x-amz-date"]) });
  return signed.headers.authorization.endsWith(`Signature=${signature}`) ? undefined : "signature";
}

/** Starts it, with a bucket `images`; returns its URL, and a function that ends it. */
export async function startS3({ read = false, region = "us-east-1" } = {}) {
  const directory = await mkdtemp(join(tmpdir(), "muster-s3-"));
  const bucket = new S3rver({ port: 0, address: "127.0.0.1", silent: true, directory, configureBuckets: [{ name: "images", configs: [] }] });
  const { port } = await bucket.run();
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const isOpen = read && request.method === "GET" && !request.headers.authorization && !request.url.includes("X-Amz-");
    const problem = isOpen ? undefined : await wrong(request, body, region);
    if (problem) return response.writeHead(403).end(`<Error><Code>${problem}</Code></Error>`);
    const { pathname } = new URL(request.url, "http://s3");
    const answer = await fetch(`http://127.0.0.1:${port}${pathname}`, { method: request.method, body: body.length ? body : undefined });
    response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = async () => {
    server.closeAllConnections();
    server.close();
    await bucket.close();
    await rm(directory, { recursive: true });
  };
  return { url: `http://127.0.0.1:${server.address().port}`, stop };
}
