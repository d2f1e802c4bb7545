package query
import ("testing";"context";"time";"encoding/json";"github.com/varvedb/varve/query/querytest")
func BenchmarkStages(b *testing.B){
 e := newEngine(b, Options{})
 db := &querytest.DB{}
 db.Add(querytest.Parse("public", "cpu", "host:String:tag ts:TimestampNanosecond:time usage:Float64\na 1767225600000000000 1"))
 sql:="SELECT date_bin(INTERVAL '1 minute', ts) AS m, max(usage) FROM cpu WHERE host IN ('a') AND ts >= '2026-01-01T00:00:00Z' AND ts < '2026-01-01T01:00:00Z' GROUP BY m ORDER BY m"
 var d [8]time.Duration
 n:=0
 for b.Loop() {
  n++
  t:=time.Now(); lap:=func(i int){ x:=time.Now(); d[i]+=x.Sub(t); t=x }
  st,_:=e.begin(context.Background()); lap(0)
  tree,err:=st.parse(sql); if err!=nil{b.Fatal(err)}; lap(1)
  r := &rewriter{req: Request{SQL:sql,Database:"public",Tables:db,Reader:db,TimeZone:time.UTC,Now:testNow}, engine: e}
  r.query(child(list(tree, "statements")[0].(node), "node"), nil, nil)
  st.pin(r.req,r.sources); lap(2)
  text,_:=json.Marshal(tree); st.conn.print.BindText(1,string(text)); out,err:=st.conn.print.Text(); if err!=nil{b.Fatal(err)}; lap(3)
  st.prepared,err=st.conn.Prepare(out); if err!=nil{b.Fatal(err)}; lap(4)
  st.result,err=st.prepared.Run(); if err!=nil{b.Fatal(err)}; res:=newResult(st); lap(5)
  for { c,_:=res.Next(context.Background()); if c==nil{break} }; lap(6)
  res.Close(); lap(7)
 }
 for i,name:=range []string{"begin","parse","rewrite","print","prepare","run","next","close"} { b.ReportMetric(float64(d[i].Microseconds())/float64(n),name+"-us") }
}
