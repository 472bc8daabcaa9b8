// A server with Kubo's RPC and gateway, after https://docs.ipfs.tech/reference/kubo/rpc/; CIDs are multiformats' own hashes of the received bytes.
// It is not Kubo, which no registry has.
import { createServer } from "node:http";
import { CID } from "multiformats/cid";
import * as raw from "multiformats/codecs/raw";
import { sha256 } from "multiformats/hashes/sha2";

/** Starts it; returns its URL, its blocks by their CIDs, remote pins, and a function that ends it. */
export async function startIpfs() {
  const [blocks, pins] = [new Map(), []];
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://kubo");
    const failed = (said, status = 500) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ Message: said, Code: 0, Type: "error" }));
    const parts = [];
    for await (const part of request) parts.push(part);
    const gateway = /^\/ipfs\/(\w+)$/.exec(pathname);
    if (gateway) return blocks.has(gateway[1]) && searchParams.get("format") === "raw" ? response.end(blocks.get(gateway[1])) : response.writeHead(404).end();
    if (request.method !== "POST") return response.writeHead(405).end();
    const cid = searchParams.get("arg");
    switch (pathname) {
      case "/api/v0/block/put": {
        const asked = ["cid-codec", "mhtype", "pin"].map((name) => searchParams.get(name));
        if (`${asked}` !== "raw,sha2-256,true") return failed(`not as agreed: ${asked}`);
        const form = await new Response(Buffer.concat(parts), { headers: request.headers }).formData();
        const block = new Uint8Array(await form.get("data").arrayBuffer());
        const key = `${CID.createV1(raw.code, await sha256.digest(block))}`;
        blocks.set(key, block);
        return response.end(JSON.stringify({ Key: key, Size: block.length }));
      }
      case "/api/v0/block/get":
        return blocks.has(cid) ? response.end(blocks.get(cid)) : failed(`block was not found locally (offline): ipld: could not find ${cid}`);
      case "/api/v0/pin/remote/add":
        pins.push(Object.fromEntries(searchParams));
        return response.end(JSON.stringify({ Status: "queued", Cid: cid }));
      default:
        return failed("404 page not found", 404);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => (server.closeAllConnections(), server.close());
  return { url: `http://127.0.0.1:${server.address().port}`, blocks, pins, stop };
}
