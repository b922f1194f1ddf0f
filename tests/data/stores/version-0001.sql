BEGIN TRANSACTION;
CREATE TABLE failures (
	"key" TEXT NOT NULL, 
	launch_key TEXT NOT NULL, 
	measurement TEXT NOT NULL, 
	kernel_digest TEXT NOT NULL, 
	kernel TEXT NOT NULL, 
	application TEXT NOT NULL, 
	suite TEXT NOT NULL, 
	device_id TEXT NOT NULL, 
	device TEXT NOT NULL, 
	platform TEXT NOT NULL, 
	driver TEXT NOT NULL, 
	ndrange TEXT, 
	work_groups INTEGER, 
	arguments_digest TEXT NOT NULL, 
	parameters TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	message TEXT NOT NULL, 
	failed_at_us INTEGER, 
	PRIMARY KEY ("key")
);
CREATE TABLE feature_schemas (
	id TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	names TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "feature_schemas" VALUES('v1-31e0bec88cc9',1,'["static.work_items_count","static.buffer_bytes","counters.flops_per_work_item"]');
CREATE TABLE kernelcast_store_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT kernelcast_store_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "kernelcast_store_version" VALUES('0001');
CREATE TABLE observations (
	"key" TEXT NOT NULL, 
	launch_key TEXT NOT NULL, 
	measurement TEXT NOT NULL, 
	kernel_digest TEXT NOT NULL, 
	kernel TEXT NOT NULL, 
	application TEXT NOT NULL, 
	suite TEXT NOT NULL, 
	device_id TEXT NOT NULL, 
	device TEXT NOT NULL, 
	platform TEXT NOT NULL, 
	driver TEXT NOT NULL, 
	ndrange TEXT, 
	work_groups INTEGER, 
	arguments_digest TEXT NOT NULL, 
	parameters TEXT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	durations_s TEXT NOT NULL, 
	noise DOUBLE, 
	run_count INTEGER NOT NULL, 
	schema_id TEXT, 
	features BLOB, 
	linear_s DOUBLE, 
	sampling_s DOUBLE, 
	samples TEXT NOT NULL, 
	origin TEXT NOT NULL, 
	source TEXT NOT NULL, 
	flags TEXT NOT NULL, 
	machine_state TEXT NOT NULL, 
	versions TEXT NOT NULL, 
	measured_at_us INTEGER, 
	PRIMARY KEY ("key")
);
INSERT INTO "observations" VALUES('6f04cfec26b37e1445579acfad096763dab6a66664a065a5eb12a752efc8aa47','aacffffcab4dcd0c384cad2d9bc661281f57e3001c75876d87735afd5df1a1f6','','5907b838b1c25c52e4182e5fa18b53b78fcbe4415174f827e093f3153ed26e8c','kernel0','application0','suite','device-0','A device','A platform','1.0','[[64000],[64],[0]]',1000,'5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9','{"N":64000}',1.00022549442737210267e-01,'[0.10068884370305009,0.10051590880588063,0.0998411431616617,0.09951783350058593,0.10002254944273721]',4.86146566241460638402e-03,5,'v1-31e0bec88cc9',X'9E45AC6F38F51040F5C451C7E0141D40EC0DBEC779690B40',0.1,0.001,'[{"is_even":true,"launch_overhead_s":1e-06,"launches":[[0,[0],[4],0.0004,null],[0,[10],[6],0.0006000000000000001,null]],"linear_s":0.1,"multiple":1,"overhead_s":0.0,"window_set":0}]','collected','','','{"governor":"performance","load":0.1}','{"kernelcast":"0.1.0","runtime":"1.0"}',1767225600000000);
INSERT INTO "observations" VALUES('6d8781adc0c96fd3bd6402280150879eaf39e63f3268e03f1bee7b538580e5e9','c7d61e075560767f1216016f8d0f35a7a451abbd522547e1a956b8cdb1263bb8','','cb447512a7aeb03e4f02c2acdb679175f818b74732a0875802d2b7084406d8da','kernel1','application0','suite','device-1','A device','A platform','1.0','[[64064],[64],[0]]',1001,'6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b','{"N":64064}',1.00990778875925724111e-01,'[0.10026141577310706,0.1017018161486132,0.10153282473033276,0.10050523943199365,0.10099077887592572]',6.31381577027988888373e-03,5,'v1-31e0bec88cc9',X'4194E3153B621240DAB98481D9D9184064FED6C0383D1D40',0.101,0.001,'[{"is_even":true,"launch_overhead_s":1e-06,"launches":[[0,[0],[4],0.0004,null],[0,[10],[6],0.0006000000000000001,null]],"linear_s":0.101,"multiple":1,"overhead_s":0.0,"window_set":0}]','collected','','','{"governor":"performance","load":0.1}','{"kernelcast":"0.1.0","runtime":"1.0"}',1767225601000000);
INSERT INTO "observations" VALUES('a72268b53d260f01ef69f0c54b7044af0ffd9b2086cc673879bb13dbe9ecef3c','1dcf17b488bf11813dfdd72e6dc8f0921faac15d5cf7d0b592277267ab73cf3b','','b6fb1338370b024e5e57398a15b18a3fa20d3f25fe3072e979aa43d3390c13c0','kernel2','application1','suite','device-2','A device','A platform','1.0','[[64128],[64],[0]]',1002,'d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35','{"N":64128}',1.02684417711384076699e-01,'[0.10293030991465407,0.10291356807360108,0.10109536479016269,0.1011531388701242,0.10268441771138408]',8.7897404315000308983e-03,5,'v1-31e0bec88cc9',X'8B603CEF108D1B408F536A736E6E19401A3E03FA81B80B40',1.02000000000000007327e-01,0.001,'[{"is_even":true,"launch_overhead_s":1e-06,"launches":[[0,[0],[4],0.0004,null],[0,[10],[6],0.0006000000000000001,null]],"linear_s":0.10200000000000001,"multiple":1,"overhead_s":0.0,"window_set":0}]','collected','','','{"governor":"performance","load":0.1}','{"kernelcast":"0.1.0","runtime":"1.0"}',1767225602000000);
INSERT INTO "observations" VALUES('48530f7a9af66e685ef72425daa210a74a404ff9f39a86b8ae4713b4b4aadf0d','55ebd90ffcde21e60d421c37b4a014aaf59632a943120a1f4ea261bb2ba41d28','','639b68bd180b47d542dd001d03557ee2d5b3065c3c783143bc9fb548f3fd7713','kernel3','application1','suite','device-0','A device','A platform','1.0','[[64192],[64],[0]]',1003,'4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce','{"N":64192}',1.03091112204109672245e-01,'[0.1024602071318093,0.10309111220410967,0.10273210764308906,0.10321407527950817,0.1032589838264626]',3.25951023803602597112e-03,5,'v1-31e0bec88cc9',X'2089B0E93F63F83F28858A1E7DAFF13F717EE0F58BCC1E40',1.03000000000000008215e-01,0.001,'[{"is_even":true,"launch_overhead_s":1e-06,"launches":[[0,[0],[4],0.0004,null],[0,[10],[6],0.0006000000000000001,null]],"linear_s":0.10300000000000001,"multiple":1,"overhead_s":0.0,"window_set":0}]','collected','','','{"governor":"performance","load":0.1}','{"kernelcast":"0.1.0","runtime":"1.0"}',1767225603000000);
CREATE INDEX ix_observations_launch_key ON observations (launch_key);
CREATE INDEX ix_observations_kernel_digest ON observations (kernel_digest);
CREATE INDEX ix_observations_kernel ON observations (kernel);
CREATE INDEX ix_observations_device_id ON observations (device_id);
CREATE INDEX ix_observations_schema_id ON observations (schema_id);
CREATE INDEX ix_failures_launch_key ON failures (launch_key);
CREATE INDEX ix_failures_kernel_digest ON failures (kernel_digest);
CREATE INDEX ix_failures_kernel ON failures (kernel);
CREATE INDEX ix_failures_device_id ON failures (device_id);
COMMIT;
